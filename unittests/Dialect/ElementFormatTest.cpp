//===- ElementFormatTest.cpp - the table of element types -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Dialect/NMTile/IR/ElementFormat.h"
#include "nm_sparse/Dialect/NMSparse/IR/StoredTypes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::nm_sparse;

namespace {

using Accumulator = ElementFormat::Accumulator;

const ElementFormat &get(llvm::StringRef name) {
  const ElementFormat *format = findElementFormat(name);
  EXPECT_TRUE(format) << name.str();
  return *format;
}

/// Bits of a row of A, zeros included.
int64_t getRowBits(const ElementFormat &format,
                   const MatrixInstruction &instruction) {
  return instruction.k * format.bits;
}

TEST(ElementFormat, TableHasEachOnce) {
  std::vector<std::string> names;
  for (const ElementFormat &format : getElementFormats()) {
    names.push_back(format.name.str());
    EXPECT_EQ(findElementFormat(format.name), &format);
  }
  std::vector<std::string> expected = {"f32",  "tf32", "f16", "bf16",
                                       "e4m3", "e5m2", "i8"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(findElementFormat("f64"), nullptr);
  EXPECT_EQ(findElementFormat(""), nullptr);
}

TEST(ElementFormat, FoundByType) {
  MLIRContext context;
  std::pair<Type, const char *> known[] = {
      {Float32Type::get(&context), "f32"},
      {FloatTF32Type::get(&context), "tf32"},
      {Float16Type::get(&context), "f16"},
      {BFloat16Type::get(&context), "bf16"},
      {Float8E4M3FNType::get(&context), "e4m3"},
      {Float8E5M2Type::get(&context), "e5m2"},
      {IntegerType::get(&context, 8), "i8"},
  };
  EXPECT_EQ(std::size(known), getElementFormats().size());
  for (auto [type, name] : known) {
    const ElementFormat *format = findElementFormat(type);
    ASSERT_TRUE(format) << name;
    EXPECT_EQ(format->name.str(), name);
    EXPECT_EQ(format->getType(&context), type) << name;
  }
}

TEST(ElementFormat, OtherTypesHaveNone) {
  MLIRContext context;
  auto integer = [&](unsigned width, IntegerType::SignednessSemantics sign) {
    return IntegerType::get(&context, width, sign);
  };
  Type others[] = {
      Float64Type::get(&context),
      Float80Type::get(&context),
      Float128Type::get(&context),
      Float8E4M3Type::get(&context),
      Float8E4M3FNUZType::get(&context),
      Float8E4M3B11FNUZType::get(&context),
      Float8E5M2FNUZType::get(&context),
      Float8E3M4Type::get(&context),
      Float8E8M0FNUType::get(&context),
      Float6E2M3FNType::get(&context),
      Float4E2M1FNType::get(&context),
      integer(1, IntegerType::Signless),
      integer(4, IntegerType::Signless),
      integer(16, IntegerType::Signless),
      integer(32, IntegerType::Signless),
      integer(8, IntegerType::Signed),
      integer(8, IntegerType::Unsigned),
      IndexType::get(&context),
      ComplexType::get(Float32Type::get(&context)),
      RankedTensorType::get({4}, Float16Type::get(&context)),
  };
  for (Type type : others) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    EXPECT_EQ(findElementFormat(type), nullptr) << text;
  }
}

TEST(ElementFormat, BitsAreThoseInMemory) {
  MLIRContext context;
  for (const ElementFormat &format : getElementFormats()) {
    int64_t width = format.getType(&context).getIntOrFloatBitWidth();
    // tf32 has 19 bits, in words of 32.
    EXPECT_EQ(format.isStored, width == format.bits) << format.name.str();
    EXPECT_LE(width, format.bits) << format.name.str();
    EXPECT_EQ(format.isStored, format.name != "tf32");
  }
}

TEST(ElementFormat, StoredTypesAreListed) {
  MLIRContext context;
  EXPECT_EQ(listStoredTypes(&context), "f32, f16, bf16, f8E4M3FN, f8E5M2, i8");
}

TEST(ElementFormat, Accumulators) {
  MLIRContext context;
  for (const ElementFormat &format : getElementFormats()) {
    bool isFloat = isa<FloatType>(format.getType(&context));
    EXPECT_EQ(format.accumulator, isFloat ? Accumulator::F32 : Accumulator::I32)
        << format.name.str();
    EXPECT_EQ(format.getAccumulatorType(&context),
              isFloat ? Type(Float32Type::get(&context))
                      : Type(IntegerType::get(&context, 32)))
        << format.name.str();
  }
}

TEST(ElementFormat, EachIsMultipliedBySomething) {
  for (const ElementFormat &format : getElementFormats()) {
    EXPECT_EQ(format.hasFMA, format.name == "f32");
    // Tensor cores have all four or none.
    bool hasMma = format.mma.has_value();
    EXPECT_EQ(hasMma, !format.hasFMA) << format.name.str();
    EXPECT_EQ(format.sparseMma.has_value(), hasMma) << format.name.str();
    EXPECT_EQ(format.wgmma.has_value(), hasMma) << format.name.str();
    EXPECT_EQ(format.sparseWgmma.has_value(), hasMma) << format.name.str();
  }
}

TEST(ElementFormat, InstructionsTakeLinesOfOneWidth) {
  for (const ElementFormat &format : getElementFormats()) {
    if (!format.mma)
      continue;
    EXPECT_EQ(getRowBits(format, *format.mma), 256) << format.name.str();
    EXPECT_EQ(getRowBits(format, *format.wgmma), 256) << format.name.str();
    EXPECT_EQ(getRowBits(format, *format.sparseMma), 512) << format.name.str();
    EXPECT_EQ(getRowBits(format, *format.sparseWgmma), 512)
        << format.name.str();
    for (const auto &warp : {*format.mma, *format.sparseMma}) {
      EXPECT_EQ(warp.m, 16);
      EXPECT_EQ(warp.n, 8);
    }
    for (const auto &warpgroup : {*format.wgmma, *format.sparseWgmma}) {
      EXPECT_EQ(warpgroup.m, 64);
      EXPECT_EQ(warpgroup.n, 256);
    }
  }
  EXPECT_EQ(get("tf32").mma->k, 8);
  EXPECT_EQ(get("f16").mma->k, 16);
  EXPECT_EQ(get("i8").mma->k, 32);
  EXPECT_EQ(get("e4m3").sparseWgmma->k, 64);
}

TEST(ElementFormat, ColumnsOfInstructions) {
  for (const ElementFormat &format : getElementFormats()) {
    if (!format.mma)
      continue;
    for (int64_t columns = -8; columns <= 272; ++columns) {
      bool isEight = columns > 0 && columns % 8 == 0 && columns <= 256;
      // Integers have no m64n40, m64n56 and so on.
      bool isWide = isEight &&
                    (format.name != "i8" || columns <= 32 || columns % 16 == 0);
      EXPECT_EQ(format.mma->isLegalN(columns), columns == 8);
      EXPECT_EQ(format.sparseMma->isLegalN(columns), columns == 8);
      EXPECT_EQ(format.wgmma->isLegalN(columns), isWide)
          << format.name.str() << " " << columns;
      EXPECT_EQ(format.sparseWgmma->isLegalN(columns), isWide)
          << format.name.str() << " " << columns;
    }
  }
}

TEST(ElementFormat, ChipsOfInstructions) {
  for (const ElementFormat &format : getElementFormats()) {
    if (!format.mma)
      continue;
    bool isF8 = format.name.starts_with("e");
    for (const auto &warp : {*format.mma, *format.sparseMma}) {
      EXPECT_FALSE(warp.existsOn("sm_75"));
      EXPECT_EQ(warp.existsOn("sm_80"), !isF8) << format.name.str();
      EXPECT_EQ(warp.existsOn("sm_86"), !isF8) << format.name.str();
      for (const char *chip : {"sm_89", "sm_90a", "sm_100a", "sm_120a"})
        EXPECT_TRUE(warp.existsOn(chip)) << format.name.str() << " " << chip;
    }
    for (const auto &warpgroup : {*format.wgmma, *format.sparseWgmma}) {
      EXPECT_TRUE(warpgroup.existsOn("sm_90a"));
      for (const char *chip : {"sm_89", "sm_90", "sm_100a", "sm_120a"})
        EXPECT_FALSE(warpgroup.existsOn(chip)) << chip;
    }
    EXPECT_EQ(format.mma->ptx, isF8 ? 84u : 70u) << format.name.str();
    EXPECT_EQ(format.sparseMma->ptx, isF8 ? 84u : 71u) << format.name.str();
    EXPECT_EQ(format.wgmma->ptx, 80u);
    EXPECT_EQ(format.sparseWgmma->ptx, 82u);
    EXPECT_FALSE(format.mma->existsOn("gfx90a"));
  }
}

TEST(ElementFormat, NamesAreThoseOfNVVM) {
  for (const ElementFormat &format : getElementFormats()) {
    EXPECT_TRUE(NVVM::symbolizeMMATypes(format.ptxType)) << format.name.str();
    EXPECT_TRUE(NVVM::symbolizeWGMMATypes(format.ptxType)) << format.name.str();
  }
  EXPECT_EQ(NVVM::symbolizeWGMMATypes(get("bf16").ptxType),
            NVVM::WGMMATypes::bf16);
  EXPECT_EQ(NVVM::symbolizeMMATypes(get("i8").ptxType), NVVM::MMATypes::s8);
}

TEST(ElementFormat, OrdersInSharedMemory) {
  for (const ElementFormat &format : getElementFormats()) {
    bool isHalf = format.name == "f16" || format.name == "bf16";
    EXPECT_EQ(format.isLegalOrder(MajorOrder::MN), isHalf) << format.name.str();
    EXPECT_EQ(format.isLegalOrder(MajorOrder::K), format.name != "f32")
        << format.name.str();
  }
}

TEST(ElementFormat, SwizzledLines) {
  llvm::ArrayRef<int64_t> legal = get("tf32").getLegalSwizzles();
  EXPECT_EQ(legal.vec(), (std::vector<int64_t>{0, 32, 64, 128}));
  EXPECT_TRUE(get("f32").getLegalSwizzles().empty());
  for (const ElementFormat &format : getElementFormats()) {
    EXPECT_EQ(format.getLineColumns() * format.bits, 1024);
    EXPECT_EQ(format.getLineColumns(32) * 4, format.getLineColumns());
    // A line holds whole steps of the contraction.
    if (format.wgmma)
      EXPECT_EQ(format.getLineColumns(32), format.wgmma->k);
  }
  EXPECT_EQ(get("f16").getLineColumns(), 64);
  EXPECT_EQ(get("tf32").getLineColumns(64), 16);
  EXPECT_EQ(get("i8").getLineColumns(), 128);
}

} // namespace
