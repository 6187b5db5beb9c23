#pragma once

// Packages of gloo leave this header out, which the headers of its pairs include. As far as these
// need it, it is declared here: their classes have to be as large as the library takes them to be.
#if __has_include_next(<gloo/common/memory.h>)
#include_next <gloo/common/memory.h>
#else

#include <memory>

namespace gloo {

template <class T>
class NonOwningPtr;

template <class T>
class WeakNonOwningPtr final {
  std::weak_ptr<T> pointer_;
};

}  // namespace gloo

#endif
