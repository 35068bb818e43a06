/** Finds numbers of clients by their IPv4 addresses. */
export class IPv4Table {
  /** Pairs of an address and its client, at a place that its hash determines. A free place has 0 as client. */
  readonly #pairs: Uint32Array;
  #place = 0;

  /** @param capacity the maximum number of addresses, a power of two */
  constructor(capacity: number) {
    this.#pairs = new Uint32Array(4 * capacity);
  }

  /** Returns the client of an address; 0 if it is unknown. */
  find(address: number): number {
    const pairs = this.#pairs;
    const last = pairs.length - 1;
    let place = hashOf(address) & last & ~1;
    let client = pairs[place + 1] as number;
    while (client !== 0 && pairs[place] !== address) {
      place = (place + 2) & last;
      client = pairs[place + 1] as number;
    }
    this.#place = place;
    return client;
  }

  /** Adds an address that is unknown. */
  add(address: number, client: number): void {
    this.find(address);
    this.#pairs[this.#place] = address;
    this.#pairs[this.#place + 1] = client;
  }
}

function hashOf(address: number): number {
  const mixed = Math.imul(address ^ (address >>> 15), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 13);
}

export function ipv4Text(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`;
}

const IPV4 = /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/;

/** Returns the 32 bits of an IPv4 address in its canonical notation; undefined for any other text. */
export function ipv4Bits(text: string): number | undefined {
  if (!IPV4.test(text)) return undefined;
  return text.split(".").reduce((bits, part) => bits * 256 + Number(part), 0);
}
