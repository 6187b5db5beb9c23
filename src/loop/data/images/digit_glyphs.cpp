#include <array>
#include <cstddef>

#include "base/core/check.hpp"
#include "digits.hpp"

namespace rubato::digits {

namespace {

// clang-format off

constexpr PenPoint kZeroOval[] = {
    {55, 2}, {35, 8}, {22, 30}, {20, 58}, {29, 86}, {48, 99}, {68, 89}, {79, 62}, {78, 32},
    {67, 9}, {52, 2}};
constexpr PenPoint kZeroNarrow[] = {
    {56, 0}, {42, 14}, {33, 40}, {32, 70}, {42, 97}, {56, 94}, {67, 68}, {69, 36}, {62, 8}, {54, 1}};
constexpr PenPoint kZeroOverlap[] = {  // the end of the stroke runs past its beginning
    {46, 10}, {30, 18}, {20, 44}, {24, 78}, {44, 98}, {66, 92}, {79, 64}, {76, 28}, {60, 5},
    {42, 4}, {34, 14}};

constexpr PenPoint kOneBar[] = {{50, 0}, {50, 33}, {50, 67}, {50, 100}};
constexpr PenPoint kOneFlag[] = {{32, 24}, {44, 12}, {54, 0}, {54, 0}, {53, 50}, {52, 100}};
constexpr PenPoint kOneFoot[] = {
    {34, 20}, {44, 11}, {52, 0}, {52, 0}, {52, 50}, {52, 99}, kPenUp,
    {30, 99}, {52, 100}, {74, 99}};

constexpr PenPoint kTwoPlain[] = {
    {22, 24}, {34, 5}, {56, 0}, {73, 14}, {71, 36}, {55, 60}, {36, 81}, {18, 98}, {18, 98},
    {48, 97}, {80, 97}};
constexpr PenPoint kTwoLoop[] = {
    {22, 20}, {40, 2}, {63, 4}, {74, 24}, {66, 50}, {46, 76}, {28, 93}, {17, 91}, {18, 79},
    {32, 76}, {50, 88}, {67, 97}, {86, 90}};
constexpr PenPoint kTwoSwan[] = {  // a small top, and a base that waves
    {28, 16}, {44, 2}, {62, 6}, {66, 24}, {56, 50}, {36, 76}, {16, 95}, {16, 95}, {36, 86},
    {58, 95}, {84, 93}};

constexpr PenPoint kThreeRound[] = {
    {24, 12}, {43, 0}, {64, 4}, {72, 20}, {62, 38}, {42, 46}, {42, 46}, {66, 53}, {78, 71},
    {68, 92}, {44, 100}, {20, 88}};
constexpr PenPoint kThreeFlat[] = {
    {22, 4}, {48, 3}, {74, 3}, {74, 3}, {60, 21}, {44, 40}, {44, 40}, {68, 48}, {77, 70}, {64, 92},
    {42, 100}, {20, 90}};
constexpr PenPoint kThreeLoop[] = {  // a small loop at the waist
    {26, 14}, {44, 0}, {66, 6}, {70, 24}, {56, 42}, {40, 50}, {37, 44}, {46, 42}, {64, 52},
    {74, 72}, {64, 93}, {42, 100}, {22, 92}};

constexpr PenPoint kFourOpen[] = {
    {32, 3}, {26, 30}, {20, 56}, {20, 56}, {50, 57}, {82, 54}, kPenUp,
    {70, 14}, {66, 56}, {62, 100}};
constexpr PenPoint kFourClosed[] = {
    {62, 0}, {40, 32}, {16, 66}, {16, 66}, {50, 67}, {86, 66}, kPenUp,
    {62, 0}, {62, 50}, {61, 100}};
constexpr PenPoint kFourCup[] = {  // the arm is a round cup
    {28, 6}, {22, 30}, {30, 48}, {50, 50}, {70, 40}, kPenUp,
    {76, 2}, {70, 46}, {62, 100}};

constexpr PenPoint kFivePlain[] = {
    {76, 3}, {54, 4}, {34, 5}, {34, 5}, {28, 43}, {28, 43}, {50, 38}, {72, 50}, {76, 73},
    {62, 94}, {40, 100}, {20, 90}};
constexpr PenPoint kFiveHat[] = {  // the hat comes last, as most hands write it
    {34, 8}, {32, 26}, {29, 44}, {29, 44}, {54, 40}, {74, 57}, {70, 84}, {48, 100}, {22, 92}, kPenUp,
    {34, 6}, {56, 4}, {82, 2}};
constexpr PenPoint kFiveRound[] = {
    {74, 5}, {50, 2}, {33, 14}, {34, 36}, {56, 46}, {73, 60}, {72, 84}, {50, 99}, {22, 92}};

constexpr PenPoint kSixRound[] = {
    {66, 2}, {43, 17}, {27, 45}, {23, 74}, {36, 97}, {58, 98}, {75, 81}, {70, 61}, {51, 54},
    {33, 63}, {25, 78}};
constexpr PenPoint kSixStraight[] = {
    {60, 0}, {46, 22}, {33, 46}, {24, 74}, {36, 98}, {58, 96}, {71, 79}, {62, 61}, {43, 62},
    {28, 76}};
constexpr PenPoint kSixHook[] = {
    {76, 12}, {58, 1}, {36, 16}, {23, 48}, {26, 82}, {48, 100}, {70, 89}, {74, 68}, {56, 53},
    {36, 60}, {27, 76}};

constexpr PenPoint kSevenPlain[] = {
    {18, 6}, {48, 5}, {80, 4}, {80, 4}, {62, 44}, {44, 100}};
constexpr PenPoint kSevenCrossed[] = {
    {18, 6}, {48, 5}, {80, 4}, {80, 4}, {60, 48}, {44, 100}, kPenUp,
    {34, 51}, {54, 50}, {76, 48}};
constexpr PenPoint kSevenSerif[] = {
    {20, 22}, {22, 5}, {22, 5}, {50, 6}, {80, 3}, {80, 3}, {62, 40}, {52, 70}, {48, 100}};
constexpr PenPoint kSevenCurved[] = {
    {16, 12}, {34, 4}, {56, 8}, {78, 4}, {72, 24}, {56, 52}, {46, 78}, {42, 100}};

constexpr PenPoint kEightOneStroke[] = {
    {70, 15}, {51, 0}, {31, 11}, {32, 31}, {52, 48}, {71, 68}, {69, 91}, {48, 100}, {27, 89},
    {29, 67}, {50, 48}, {68, 31}, {69, 13}};
constexpr PenPoint kEightTwoRings[] = {
    {50, 0}, {33, 9}, {31, 30}, {48, 44}, {66, 34}, {67, 11}, {50, 0}, kPenUp,
    {49, 45}, {28, 59}, {24, 84}, {47, 100}, {71, 88}, {71, 61}, {51, 45}};
constexpr PenPoint kEightOpen[] = {  // the stroke does not come back to where it began
    {76, 8}, {54, 1}, {33, 12}, {35, 33}, {55, 51}, {69, 72}, {62, 94}, {42, 100}, {27, 86},
    {34, 64}, {54, 46}, {78, 22}};

constexpr PenPoint kNineStraight[] = {
    {71, 15}, {54, 1}, {33, 8}, {25, 28}, {34, 46}, {54, 46}, {69, 28}, {73, 8}, {73, 8}, {70, 54},
    {65, 100}};
constexpr PenPoint kNineCurved[] = {
    {72, 16}, {54, 1}, {33, 9}, {25, 29}, {36, 47}, {56, 45}, {71, 26}, {74, 14}, {75, 52},
    {66, 86}, {46, 100}, {26, 92}};
constexpr PenPoint kNineLeaning[] = {
    {66, 12}, {48, 2}, {30, 16}, {28, 36}, {42, 46}, {60, 34}, {72, 8}, {72, 8}, {60, 56}, {46, 100}};

// clang-format on

constexpr Glyph kZero[] = {kZeroOval, kZeroNarrow, kZeroOverlap};
constexpr Glyph kOne[] = {kOneBar, kOneFlag, kOneFoot};
constexpr Glyph kTwo[] = {kTwoPlain, kTwoLoop, kTwoSwan};
constexpr Glyph kThree[] = {kThreeRound, kThreeFlat, kThreeLoop};
constexpr Glyph kFour[] = {kFourOpen, kFourClosed, kFourCup};
constexpr Glyph kFive[] = {kFivePlain, kFiveHat, kFiveRound};
constexpr Glyph kSix[] = {kSixRound, kSixStraight, kSixHook};
constexpr Glyph kSeven[] = {kSevenPlain, kSevenCrossed, kSevenSerif, kSevenCurved};
constexpr Glyph kEight[] = {kEightOneStroke, kEightTwoRings, kEightOpen};
constexpr Glyph kNine[] = {kNineStraight, kNineCurved, kNineLeaning};

constexpr std::array<std::span<const Glyph>, 10> kDigits{kZero, kOne, kTwo,   kThree, kFour,
                                                         kFive, kSix, kSeven, kEight, kNine};

}  // namespace

std::span<const Glyph> glyphs(int digit) {
  RUBATO_CHECK(0 <= digit && digit <= 9, "there are ten digits");
  return kDigits[static_cast<std::size_t>(digit)];
}

}  // namespace rubato::digits
