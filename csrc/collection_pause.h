// Keeps the program's finalisers and callbacks of the garbage collector out of code that they must not interrupt.
#pragma once

#include <Python.h>

namespace twofold {

// While one lives no garbage is collected.
class CollectionPause {
 public:
  CollectionPause() : collects_(PyGC_Disable()) {}
  ~CollectionPause() {
    if (collects_) PyGC_Enable();
  }
  CollectionPause(const CollectionPause&) = delete;
  CollectionPause& operator=(const CollectionPause&) = delete;

  // Inside, for code of the program, garbage is collected as before.
  class Lifted {
   public:
    explicit Lifted(CollectionPause& pause) : pause_(pause) {
      if (pause_.collects_) PyGC_Enable();
    }
    ~Lifted() { pause_.collects_ = PyGC_Disable(); }
    Lifted(const Lifted&) = delete;
    Lifted& operator=(const Lifted&) = delete;

   private:
    CollectionPause& pause_;
  };

 private:
  int collects_;
};

}  // namespace twofold
