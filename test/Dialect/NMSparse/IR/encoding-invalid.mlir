// RUN: nm-opt %s -verify-diagnostics --split-input-file

// Syntax of the encoding.

// expected-error @below {{n must be at least 1, got 0; write 'free' for a ragged distribution}}
#e = #nm_sparse.encoding<0:4>

// -----

// expected-error @below {{n must be at least 1, got -1}}
#e = #nm_sparse.encoding<-1:4>

// -----

// expected-error @below {{unknown key 'blocks', expected 'block', 'dim' or 'order'}}
#e = #nm_sparse.encoding<2:4, blocks = [1, 1]>

// -----

// expected-error @below {{'dim' given twice}}
#e = #nm_sparse.encoding<2:4, dim = 0, dim = 1>

// -----

// expected-error @below {{unknown order 'sorted', expected 'identity' or 'shuffled'}}
#e = #nm_sparse.encoding<2:4, order = sorted>

// -----

// Levels.

// expected-error @below {{an encoding has one level or two, got 3}}
#e = #nm_sparse.encoding<[4:8], [2:4], [1:2]>

// -----

// expected-error @below {{expected ']'}}
#e = #nm_sparse.encoding<[4:8 2:4]>

// -----

// expected-error @below {{expected 'block'}}
#e = #nm_sparse.encoding<[4:8, dim = 1], [2:4]>

// -----

// expected-error @below {{unknown key 'block', expected 'dim' or 'order' after the levels, each of which has its own 'block'}}
#e = #nm_sparse.encoding<[4:8], [2:4], block = [1, 64]>

// -----

// expected-error @below {{expected valid keyword}}
#e = #nm_sparse.encoding<[4:8], dim = 1, [2:4]>

// -----

// expected-error @below {{n must be at least 1, got 0; write 'free'}}
#e = #nm_sparse.encoding<[4:8], [0:4]>

// -----

// expected-error @below {{n must not exceed m, got 5:4}}
#e = #nm_sparse.encoding<[4:8], [5:4]>

// -----

// expected-error @below {{a 'free' distribution has no windows for a second level; both levels must be n:m}}
#e = #nm_sparse.encoding<[free, block = [1, 64]], [2:4]>

// -----

// expected-error @below {{a 'free' distribution has no windows for a second level}}
#e = #nm_sparse.encoding<[4:8], [free]>

// -----

// expected-error @below {{inner blocks [1, 3] must divide the outer ones, [1, 64]}}
#e = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4, block = [1, 3]]>

// -----

// expected-error @below {{inner blocks [4, 1] must divide the outer ones, [2, 64]}}
#e = #nm_sparse.encoding<[4:8, block = [2, 64]], [1:2, block = [4, 1]]>

// -----

// expected-error @below {{an inner window of 4 x 1 rows must be the 8 x 1 rows that the outer level keeps of a window}}
#e = #nm_sparse.encoding<[8:20, block = [1, 64]], [2:4]>

// -----

// Values of its parameters.

// expected-error @below {{n must not exceed m, got 5:4}}
#e = #nm_sparse.encoding<5:4>

// -----

// expected-error @below {{n:m must be positive, got 2:-4}}
#e = #nm_sparse.encoding<2:-4>

// -----

// expected-error @below {{block extents must be at least 1, got [0, 1]}}
#e = #nm_sparse.encoding<2:4, block = [0, 1]>

// -----

// expected-error @below {{block extents must be at least 1, got [1, -2]}}
#e = #nm_sparse.encoding<free, block = [1, -2]>

// -----

// expected-error @below {{a window of 131072 blocks of 1 rows is longer than the 65536 rows that a window may have}}
#e = #nm_sparse.encoding<2:131072>

// -----

// expected-error @below {{a window of 2048 blocks of 64 rows is longer than the 65536 rows}}
#e = #nm_sparse.encoding<2:2048, block = [64, 1]>

// -----

// expected-error @below {{a panel of 2097152 outputs is wider than the 1048576 allowed}}
#e = #nm_sparse.encoding<2:4, block = [1, 2097152]>

// -----

// expected-error @below {{dim must be one of the last two dimensions of a rank-2 or rank-3 tensor, got 3}}
#e = #nm_sparse.encoding<2:4, dim = 3>

// -----

// expected-error @below {{dim must be one of the last two dimensions of a rank-2 or rank-3 tensor, got -1}}
#e = #nm_sparse.encoding<2:4, dim = -1>

// -----

// The tensor that it is on.

// expected-error @below {{nm_sparse encoding needs a tensor of rank 2, of rank 3 with a leading batch, or of rank 4 for a convolution, got rank 1}}
func.func private @rank1(tensor<64xf32, #nm_sparse.encoding<2:4>>)

// -----

// expected-error @below {{got rank 5}}
func.func private @rank5(tensor<2x2x2x64x64xf32, #nm_sparse.encoding<2:4>>)

// -----

// expected-error @below {{nm_sparse encoding has dim = 2, legal for the weight of a convolution are 0, its outputs last, and 1, its outputs first}}
func.func private @dimOfConvolution(tensor<3x3x64x64xf32, #nm_sparse.encoding<2:4, dim = 2>>)

// -----

// expected-error @below {{nm_sparse encoding has dim = 2, legal for a tensor of rank 2 are 0 and 1}}
func.func private @dim2(tensor<64x64xf32, #nm_sparse.encoding<2:4, dim = 2>>)

// -----

// expected-error @below {{a tensor with nm_sparse encoding has 9223372036854775807 in dimension 0, legal is at most 2147483647}}
func.func private @rows(tensor<9223372036854775807x64xf32, #nm_sparse.encoding<2:4>>)

// -----

// expected-error @below {{a tensor with nm_sparse encoding has more than 281474976710656 elements, legal are at most as many}}
func.func private @elements(tensor<2147483647x2147483647xf32, #nm_sparse.encoding<2:4>>)

// -----

// expected-error @below {{nm_sparse encoding has dim = 0, legal for a tensor of rank 3 are 1 and 2}}
func.func private @dim0(tensor<2x64x64xf32, #nm_sparse.encoding<2:4>>)

// -----

// expected-error @below {{nm_sparse encoding on element type 'f64', legal are f32, f16, bf16, f8E4M3FN, f8E5M2, i8}}
func.func private @f64(tensor<64x64xf64, #nm_sparse.encoding<2:4>>)

// -----

// expected-error @below {{nm_sparse encoding on element type 'tf32', legal are}}
func.func private @tf32(tensor<64x64xtf32, #nm_sparse.encoding<2:4>>)

// -----

// expected-error @below {{nm_sparse encoding on element type 'i32', legal are}}
func.func private @i32(tensor<64x64xi32, #nm_sparse.encoding<2:4>>)

// -----

// The description of packed arguments.

// expected-error @below {{nm_sparse encoding has dim = 2, legal for a tensor of rank 2 are 0 and 1}}
#p = #nm_sparse.packed<#nm_sparse.encoding<2:4, dim = 2>, [64, 64], f16>

// -----

// expected-error @below {{#nm_sparse.encoding<free> cannot be packed yet: 'free' names no number of blocks in a window; use n:m}}
#p = #nm_sparse.packed<#nm_sparse.encoding<free>, [64, 64], f16>

// -----

// expected-error @below {{the shape of a packed weight must be static}}
#p = #nm_sparse.packed<#nm_sparse.encoding<2:4>, [64, -1], f16>
