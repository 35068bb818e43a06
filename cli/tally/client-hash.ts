/**
 * The 64-bit hash of a client's name, in two halves of 32 bits. The object is reused for every request, because a
 * log can have ten million of them.
 *
 * Among a million clients, two have the same hash with a probability of 1 in 37 million. The hash is not secret, so
 * a client who chooses its own name, such as an API key, can find two names with the same hash. It would then count
 * as one client.
 */
export class ClientHash {
  /** Never 0: a table uses 0 for a free place. */
  high = 1;
  low = 0;

  /** Computes the hash of a text. */
  set(text: string): this {
    let one = 0x9747b28c | 0;
    let two = 0x2f6a5c13;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      one = Math.imul(one ^ unit, 0xcc9e2d51);
      one = (one << 15) | (one >>> 17);
      two = Math.imul(two ^ unit, 0x85ebca6b);
      two = (two << 13) | (two >>> 19);
    }
    one = mixed(one ^ text.length);
    two = mixed(two ^ one);
    this.low = one >>> 0;
    this.high = two >>> 0 || 1;
    return this;
  }
}

/** The last step of MurmurHash3, after which each bit depends on all bits. */
function mixed(half: number): number {
  let value = Math.imul(half ^ (half >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
}
