// RUN: nm-opt %s --nm-sparse-fold-functions | FileCheck %s
// RUN: nm-opt %s --nm-sparse-fold-functions --nm-sparse-restore-functions | FileCheck %s --check-prefix=BACK

// CHECK: func.func @first
// CHECK-SAME: attributes {nm_tile.copies = [{after = "first", name = "second"}, {after = "called", name = "fourth"}]}
// CHECK-NOT: @second
// CHECK: func.func @other
// CHECK-NOT: nm_tile.copies
// CHECK: func.func @named
// CHECK-NOT: nm_tile.copies
// CHECK: func.func @called
// CHECK-NOT: @fourth
// CHECK: func.func private @declared
// CHECK: func.func private @declared_too

// BACK: func.func @first
// BACK-NEXT: arith.addf
// BACK: func.func @second
// BACK-NEXT: arith.addf
// BACK: func.func @other
// BACK: func.func @named
// BACK: func.func @called
// BACK: func.func @fourth
// BACK-NEXT: arith.addf
// BACK: func.func private @declared

func.func @first(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
// Equal to @first.
func.func @second(%y: f32) -> f32 {
  %0 = arith.addf %y, %y : f32
  return %0 : f32
}
func.func @other(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  return %0 : f32
}
// Has an attribute that @first has not.
func.func @named(%x: f32) -> f32 attributes {llvm.emit_c_interface} {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
// Is called.
func.func @called(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @fourth(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @declared(f32) -> f32
func.func private @declared_too(f32) -> f32
func.func @caller(%x: f32) -> f32 {
  %0 = func.call @called(%x) : (f32) -> f32
  return %0 : f32
}
