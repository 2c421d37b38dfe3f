// RUN: nm-opt %s --nm-sparse-lower-roles --split-input-file --verify-diagnostics

func.func @ring(%ring: !nm_tile.ring<3>) {
  // expected-error @below {{uses a ring that no nm_tile.ring sets up}}
  %begin = nm_tile.ring_begin full %ring : !nm_tile.ring<3>
  return
}

// -----

func.func @position(%at: !nm_tile.ring_position) {
  // expected-error @below {{uses a position in a ring that is from func.func; legal are nm_tile.ring_begin, nm_tile.ring_advance and the loops of nm_tile}}
  %slot = nm_tile.ring_slot %at
  return
}
