//===- dialects.c - the dialects from C -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: nm-test-capi 2>&1 | FileCheck %s

#include "nm_sparse-c/Dialects.h"

#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"

#include <inttypes.h>
#include <stdio.h>

static void printText(MlirStringRef text, void *unused) {
  (void)unused;
  printf("%.*s", (int)text.length, text.data);
}

static MlirLogicalResult printDiagnostic(MlirDiagnostic diagnostic,
                                         void *unused) {
  printf("error: ");
  mlirDiagnosticPrint(diagnostic, printText, unused);
  printf("\n");
  return mlirLogicalResultSuccess();
}

static void printAttribute(const char *name, MlirAttribute attr) {
  printf("%s: ", name);
  if (mlirAttributeIsNull(attr))
    printf("null");
  else
    mlirAttributePrint(attr, printText, NULL);
  printf("\n");
}

static void printType(const char *name, MlirType type) {
  printf("%s: ", name);
  mlirTypePrint(type, printText, NULL);
  printf("\n");
}

static void testHandles(MlirContext ctx) {
  // CHECK: dialect nm_sparse
  // CHECK: dialect nm_tile
  MlirDialectHandle handles[] = {mlirGetDialectHandle__nm_sparse__(),
                                 mlirGetDialectHandle__nm_tile__()};
  for (int i = 0; i < 2; ++i) {
    mlirDialectHandleRegisterDialect(handles[i], ctx);
    MlirDialect dialect = mlirDialectHandleLoadDialect(handles[i], ctx);
    printf("dialect ");
    printText(mlirDialectGetNamespace(dialect), NULL);
    printf("\n");
  }
}

static void testEncoding(MlirContext ctx) {
  MlirNMSparseLevel levels[] = {{4, 10, 1, 64}, {2, 4, 1, 1}};
  MlirAttribute two =
      mlirNMSparseEncodingAttrGet(ctx, 2, levels, 1, MlirNMSparseOrderShuffled);
  // CHECK: two levels: #nm_sparse.encoding<[4:10, block = [1, 64]], [2:4], dim = 1, order = shuffled>
  printAttribute("two levels", two);
  // CHECK: is an encoding: 1, of this type: 1
  printf("is an encoding: %d, of this type: %d\n",
         mlirAttributeIsANMSparseEncoding(two),
         mlirTypeIDEqual(mlirAttributeGetTypeID(two),
                         mlirNMSparseEncodingAttrGetTypeID()));
  // CHECK: 2 levels, dim 1, order 1, free 0, density 0.20
  printf("%d levels, dim %" PRId64 ", order %d, free %d, density %.2f\n",
         (int)mlirNMSparseEncodingAttrGetNumLevels(two),
         mlirNMSparseEncodingAttrGetDim(two),
         (int)mlirNMSparseEncodingAttrGetOrder(two),
         mlirNMSparseEncodingAttrIsFree(two),
         mlirNMSparseEncodingAttrGetDensity(two));
  // CHECK: level 0: 4:10, block [1, 64]
  // CHECK: level 1: 2:4, block [1, 1]
  for (int i = 0; i < 2; ++i) {
    MlirNMSparseLevel level = mlirNMSparseEncodingAttrGetLevel(two, i);
    printf("level %d: %" PRId64 ":%" PRId64 ", block [%" PRId64 ", %" PRId64
           "]\n",
           i, level.n, level.m, level.blockK, level.blockN);
  }
  // The text form and the constructor make one attribute.
  // CHECK: equal to parsed: 1
  printf("equal to parsed: %d\n",
         mlirAttributeEqual(
             two, mlirAttributeParseGet(
                      ctx, mlirStringRefCreateFromCString(
                               "#nm_sparse.encoding<[4:10, block = [1, 64]], "
                               "[2:4], dim = 1, order = shuffled>"))));

  MlirNMSparseLevel wrong = {5, 4, 1, 1};
  // CHECK: error: n must not exceed m, got 5:4
  // CHECK: wrong: null
  MlirAttribute none =
      mlirNMSparseEncodingAttrGet(ctx, 1, &wrong, 0, MlirNMSparseOrderIdentity);
  printAttribute("wrong", none);
  // CHECK: null is an encoding: 0
  printf("null is an encoding: %d\n", mlirAttributeIsANMSparseEncoding(none));
  // CHECK: error: order must be 0 (identity) or 1 (shuffled), got 2
  // CHECK: wrong order: null
  printAttribute("wrong order", mlirNMSparseEncodingAttrGet(
                                    ctx, 2, levels, 1, (MlirNMSparseOrder)2));
}

static void testTypes(MlirContext ctx) {
  MlirNMSparseLevel level = {2, 4, 1, 1};
  MlirAttribute encoding =
      mlirNMSparseEncodingAttrGet(ctx, 1, &level, 0, MlirNMSparseOrderIdentity);
  int64_t shape[] = {64, 32};
  MlirType type =
      mlirRankedTensorTypeGet(2, shape, mlirF16TypeGet(ctx), encoding);
  // CHECK: type: tensor<64x32xf16, #nm_sparse.encoding<2:4>>
  printType("type", type);
  MlirType plain = mlirNMSparseTypeStripEncoding(type);
  // CHECK: stripped: tensor<64x32xf16>
  printType("stripped", plain);
  // CHECK: other: index
  printType("other", mlirNMSparseTypeStripEncoding(mlirIndexTypeGet(ctx)));
  // CHECK: encoded: 1 0 0
  printf("encoded: %d %d %d\n", mlirTypeIsNMSparseEncoded(type),
         mlirTypeIsNMSparseEncoded(plain),
         mlirTypeIsNMSparseEncoded(mlirIndexTypeGet(ctx)));
  // CHECK: encoding: 1 null: 1
  printf("encoding: %d null: %d\n",
         mlirAttributeEqual(mlirNMSparseTypeGetEncoding(type), encoding),
         mlirAttributeIsNull(mlirNMSparseTypeGetEncoding(plain)));
}

static void printPacked(MlirAttribute packed) {
  printAttribute("packed", packed);
  printType("  weight", mlirNMSparsePackedAttrGetWeightType(packed));
  printAttribute("  storage", mlirNMSparsePackedAttrGetStorage(packed));
  printf("  layout version %" PRId64 "\n",
         mlirNMSparsePackedAttrGetLayoutVersion(packed));
  for (intptr_t i = 0; i < mlirNMSparsePackedAttrGetNumComponents(packed);
       ++i) {
    printf("  ");
    printText(mlirNMSparsePackedAttrGetComponentName(packed, i), NULL);
    printType("", mlirNMSparsePackedAttrGetComponentType(packed, i));
  }
}

static void testStorage(MlirContext ctx) {
  MlirNMSparseLevel half = {8, 16, 1, 1}, panels = {0, 0, 1, 128};
  MlirAttribute encoding =
      mlirNMSparseEncodingAttrGet(ctx, 1, &half, 0, MlirNMSparseOrderIdentity);
  MlirAttribute open = mlirNMSparseEncodingAttrGet(ctx, 1, &panels, 0,
                                                   MlirNMSparseOrderIdentity);
  int64_t shape[] = {256, 128};
  MlirType f16 = mlirF16TypeGet(ctx);
  // CHECK: packed: #nm_sparse.packed<#nm_sparse.encoding<8:16>, [256, 128], f16>
  // CHECK-NEXT: weight: tensor<256x128xf16>
  // CHECK-NEXT: storage: #nm_sparse.encoding<8:16>
  // CHECK-NEXT: layout version 1
  // CHECK-NEXT: values: tensor<128x128xf16>
  // CHECK-NEXT: index: tensor<128x128xi8>
  printPacked(mlirNMSparsePackedAttrGet(encoding, 2, shape, f16));

  MlirAttribute bitmap = mlirNMSparseBitmapAttrGet(encoding, 50);
  // CHECK: bitmap: #nm_sparse.bitmap<#nm_sparse.encoding<8:16>>
  printAttribute("bitmap", bitmap);
  // CHECK: is: 1 0, of its encoding: 1, density 50
  printf(
      "is: %d %d, of its encoding: %d, density %" PRId64 "\n",
      mlirAttributeIsANMSparseBitmap(bitmap),
      mlirAttributeIsANMSparseRagged(bitmap),
      mlirAttributeEqual(mlirNMSparseBitmapAttrGetEncoding(bitmap), encoding),
      mlirNMSparseBitmapAttrGetDensity(bitmap));
  // CHECK: packed: #nm_sparse.packed<#nm_sparse.bitmap<#nm_sparse.encoding<8:16>>, [256, 128], f16>
  // CHECK: layout version 4
  // CHECK-NEXT: values: tensor<4x8x512xf16>
  // CHECK-NEXT: bits: tensor<4x8x32xi32>
  printPacked(mlirNMSparsePackedAttrGet(bitmap, 2, shape, f16));

  MlirAttribute ragged = mlirNMSparseRaggedAttrGet(open, 32, 25);
  // CHECK: ragged: #nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 128]>, rows = 32, density = 25>
  printAttribute("ragged", ragged);
  // CHECK: is: 0 1, of its encoding: 1, rows 32, density 25, free 1
  printf("is: %d %d, of its encoding: %d, rows %" PRId64 ", density %" PRId64
         ", free %d\n",
         mlirAttributeIsANMSparseBitmap(ragged),
         mlirAttributeIsANMSparseRagged(ragged),
         mlirAttributeEqual(mlirNMSparseRaggedAttrGetEncoding(ragged), open),
         mlirNMSparseRaggedAttrGetRows(ragged),
         mlirNMSparseRaggedAttrGetDensity(ragged),
         mlirNMSparseEncodingAttrIsFree(open));
  // CHECK: default of free: #nm_sparse.ragged<#nm_sparse.encoding<free, block = [1, 128]>>
  printAttribute("default of free",
                 mlirNMSparseEncodingAttrGetDefaultStorage(open));
  // CHECK: is packed: 1 0
  MlirAttribute packed = mlirNMSparsePackedAttrGet(ragged, 2, shape, f16);
  printf("is packed: %d %d\n", mlirAttributeIsANMSparsePacked(packed),
         mlirAttributeIsANMSparsePacked(ragged));

  // CHECK: error: ragged panels are those of a free weight, got #nm_sparse.encoding<8:16>
  // CHECK: no panels of n:m: null
  printAttribute("no panels of n:m",
                 mlirNMSparseRaggedAttrGet(encoding, 32, 25));
  // CHECK: error: {{.*}}cannot be packed yet
  // CHECK: no such form: null
  printAttribute("no such form",
                 mlirNMSparsePackedAttrGet(open, 2, shape, f16));
  // CHECK: error: {{.*}} does not say how a weight is stored
  // CHECK: no form: null
  printAttribute("no form", mlirNMSparsePackedAttrGet(packed, 2, shape, f16));
}

int main(void) {
  MlirContext ctx = mlirContextCreate();
  mlirContextAttachDiagnosticHandler(ctx, printDiagnostic, NULL, NULL);
  testHandles(ctx);
  testEncoding(ctx);
  testTypes(ctx);
  testStorage(ctx);
  mlirContextDestroy(ctx);
  // CHECK: done
  printf("done\n");
  return 0;
}
