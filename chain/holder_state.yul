// Returns slot and value of every word that is not zero: the first 256; as 256 to 511 the last words of the lists that they may be the length
// of; and three words from where each mapping keeps the first word of the calldata, plain or with one of the further words as the other key.
// `holder_state.py` holds it compiled (solc, Shanghai, optimised).
object "Words" {
  code {
    let out := 0x80
    let wallet := calldataload(0)
    for { let low := 0 } lt(low, 256) { low := add(low, 1) } {
      out := look(low, 1, out)
      let length := sload(low)
      mstore(0, low)
      if iszero(gt(sub(length, 1), 0xffffffff)) { out := tell(add(256, low), sload(add(keccak256(0, 32), sub(length, 1))), out) }
    }
    for { let p := 0 } lt(p, 28) { p := add(p, 1) } {
      let at := p
      if gt(p, 23) { at := sub(mul(50, sub(p, 23)), sub(0, 1)) }
      let inner := pair(wallet, at)
      out := look(inner, 3, out)
      out := look(pair(at, wallet), 3, out)
      mstore(0, inner)
      out := look(keccak256(0, 32), 3, out)
      for { let k := 32 } lt(k, calldatasize()) { k := add(k, 32) } {
        let key := calldataload(k)
        out := look(pair(key, inner), 3, out)
        out := look(pair(wallet, pair(key, at)), 3, out)
      }
    }
    return(0x80, sub(out, 0x80))
    function pair(a, b) -> slot { mstore(0, a) mstore(32, b) slot := keccak256(0, 64) }
    function look(slot, words, into) -> next {
      next := into
      for { let at := slot } lt(sub(at, slot), words) { at := add(at, 1) } {
        next := tell(at, sload(at), next)
      }
    }
    function tell(slot, value, into) -> next {
      next := into
      if value { mstore(next, slot) mstore(add(next, 32), value) next := add(next, 64) }
    }
  }
}
