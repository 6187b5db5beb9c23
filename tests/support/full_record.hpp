#pragma once

#include <string>
#include <vector>

#include "loop/train/record_schemas.hpp"

namespace rubato::test {

/// A value of a column, another for each number; a flag's is the unusual one.
inline Cell some_cell(const ColumnInfo& column, int number) {
  switch (column.type) {
    case ColumnType::whole:
      return std::int64_t{number};
    case ColumnType::real:
      return 1.0 / number;
    case ColumnType::flag:
      return !column.usual.value_or(false);
    case ColumnType::text:
      if (column.name == "digest") return std::string(30, 'a') + std::to_string(10 + number);
      return "text" + std::to_string(number);
    case ColumnType::wholes:
      return std::vector<std::int64_t>{number};
    case ColumnType::numbers:
      return std::vector<NamedNumber>{{"mine", 1.0 / number}};
    case ColumnType::texts:
      break;
  }
  return NamedTexts{{"mine", "text"}};
}

/// A record with a value for each column that is a member, whatever columns there will be.
template <class Record>
[[nodiscard]] Record full_record(const RecordSchema<Record>& schema) {
  Record record{};
  int number = 1;
  for (const RecordColumn<Record>& column : schema.columns) {
    if (column.is_writable()) column.write(record, some_cell(column.info(), ++number));
  }
  return record;
}

/// A step with all that a step can have.
[[nodiscard]] inline StepRecord full_step() {
  StepRecord step = full_record(step_schema());
  step.plan.batch_size = 64;
  step.plan.cores = 2;
  step.plan.minibatches = 4;
  step.skipped = true;
  step.minibatches = {MinibatchRecord{}};
  return step;
}

}  // namespace rubato::test
