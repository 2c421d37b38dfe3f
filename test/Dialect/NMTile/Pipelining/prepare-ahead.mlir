// RUN: nm-opt %s --allow-unregistered-dialect --nm-sparse-prepare-ahead --split-input-file --verify-diagnostics | FileCheck %s

// Waits and reads of the next slot come before the wait for the products, where
// there is a next step.
// CHECK-LABEL: func.func @ring
// CHECK-SAME: %[[TILES:.*]]: memref<3xi32>, %[[LOW:.*]]: index, %[[HIGH:.*]]: index
// CHECK: %[[ANY:.*]] = arith.cmpi ult, %[[LOW]], %[[HIGH]]
// CHECK: %[[FIRST:.*]] = scf.if %[[ANY]] -> (i32) {
// CHECK: "test.wait"
// CHECK: memref.load %[[TILES]]
// CHECK: } else {
// CHECK: scf.yield %c0_i32
// CHECK: scf.for %[[K:.*]] = %[[LOW]] to %[[HIGH]] step %[[STEP:.*]] iter_args(%[[SLOT:.*]] = %{{.*}}, %[[WORD:.*]] = %[[FIRST]])
// CHECK-NOT: memref.load
// CHECK: "test.product"(%[[WORD]], %[[SLOT]])
// CHECK: %[[NEXT:.*]] = arith.addi %[[SLOT]]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[K]], %[[STEP]]
// CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[BEHIND]], %[[HIGH]]
// CHECK: %[[WORDS:.*]] = scf.if %[[MORE]] -> (i32) {
// CHECK: "test.wait"(%[[NEXT]])
// CHECK: memref.load %[[TILES]][%[[NEXT]]]
// CHECK: } else {
// CHECK: scf.yield %[[WORD]]
// CHECK: nm_tile.product_wait metadata(%[[WORD]])
// CHECK: "test.release"(%[[SLOT]])
// CHECK: scf.yield %{{.*}}, %[[WORDS]]
func.func @ring(%tiles: memref<3xi32>, %low: index, %high: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = scf.for %k = %low to %high step %c1 iter_args(%slot = %c0) -> (index) {
    "test.wait"(%slot) : (index) -> ()
    %bits = memref.load %tiles[%slot] : memref<3xi32>
    %word = arith.addi %bits, %bits : i32
    "test.product"(%word, %slot) : (i32, index) -> ()
    nm_tile.product_wait ahead metadata(%word)
    "test.release"(%slot) : (index) -> ()
    %next = arith.addi %slot, %c1 : index
    scf.yield %next : index
  }
  return
}

// Others stay as they are.
// CHECK-LABEL: func.func @behind
// CHECK: scf.for
// CHECK-NEXT: memref.load
// CHECK: nm_tile.product_wait metadata
func.func @behind(%tiles: memref<3xi32>, %low: index, %high: index) {
  %c1 = arith.constant 1 : index
  scf.for %k = %low to %high step %c1 {
    %word = memref.load %tiles[%k] : memref<3xi32>
    "test.product"(%word) : (i32) -> ()
    nm_tile.product_wait metadata(%word)
  }
  return
}

// -----

func.func @no_loop(%word: i32) {
  // expected-error @below {{ahead must be in the body of an scf.for}}
  nm_tile.product_wait ahead metadata(%word)
  return
}

// -----

func.func @from_outside(%word: i32, %low: index, %high: index) {
  %c1 = arith.constant 1 : index
  scf.for %k = %low to %high step %c1 {
    // expected-error @below {{ahead has metadata that is not made in each iteration of its loop}}
    nm_tile.product_wait ahead metadata(%word)
  }
  return
}

// -----

func.func @two(%tiles: memref<3xi32>, %low: index, %high: index) {
  %c1 = arith.constant 1 : index
  scf.for %k = %low to %high step %c1 {
    %a = memref.load %tiles[%k] : memref<3xi32>
    nm_tile.product_wait ahead metadata(%a)
    %b = memref.load %tiles[%k] : memref<3xi32>
    // expected-error @below {{ahead must be the only one of its loop}}
    nm_tile.product_wait ahead metadata(%b)
  }
  return
}
