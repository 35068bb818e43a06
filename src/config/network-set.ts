import * as v from "valibot";
import type { Address } from "./address.ts";
import { faultText } from "./fault-text.ts";
import { pathToItem } from "./fields.ts";
import { type Network, parseNetwork } from "./network.ts";

const NETWORK = faultText(
  'an address or a network, such as "198.51.100.0/24" or "2001:db8::/32"; IPv4 in its own notation, not as IPv6',
);
const NETWORKS = faultText(() => `a list of one or more: ${NETWORK}`);

/**
 * The maximum number of networks in one list. The list is read when the Worker starts, for which
 * Cloudflare allows one second of CPU time.
 */
export const MAX_NETWORKS = 50_000;

/**
 * A set of networks that finds the network of an address by binary search.
 *
 * The set stores each network as a text: its family, one character for each 16 bits of its first
 * address, and one for the length of its prefix. So the texts have the order of the addresses, and
 * a network comes before the networks that are part of it.
 */
export class NetworkSet {
  readonly #texts: readonly string[];
  /**
   * The texts of the networks in ascending order, without networks that are part of another
   * network.
   */
  readonly #keys: readonly string[];

  /** @param texts the networks as users write them, for messages */
  constructor(texts: readonly string[], networks: readonly Network[]) {
    this.#texts = texts;
    const keys: string[] = [];
    let widest = "";
    for (const key of networks.map(([address, bits]) => keyOf(address, bits)).sort()) {
      if (widest !== "" && isWithin(key, widest)) continue;
      keys.push(key);
      widest = key;
    }
    this.#keys = keys;
  }

  /** The number of networks, as the user has written them. */
  get size(): number {
    return this.#texts.length;
  }

  contains(address: Address): boolean {
    const key = keyOf(address, MAX_BITS);
    const network = this.#keys[lastAtMost(this.#keys, key)];
    return network !== undefined && isWithin(key, network);
  }

  /** Yields the networks in the order in which the user has written them. */
  *[Symbol.iterator](): Generator<Network> {
    for (const text of this.#texts) yield parseNetwork(text) as Network;
  }

  /** JSON contains the networks in the order in which the user has written them. */
  toJSON(): Network[] {
    return [...this];
  }
}

/**
 * Returns the index of the last text that is at most `limit`, by binary search; -1 if there is none.
 *
 * @param sorted texts in ascending order
 */
export function lastAtMost(sorted: readonly string[], limit: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as string) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const MAX_BITS = 128;
const GROUP_BITS = 16;

/** Returns the text of a network, or of the network that contains only one address. */
function keyOf({ bytes }: Address, bits: number): string {
  const codes = [bytes.length];
  for (let index = 0; index < bytes.length; index += 2) {
    const group = ((bytes[index] as number) << 8) | (bytes[index + 1] as number);
    const zeros = Math.min(GROUP_BITS, Math.max(0, (index + 2) * 8 - bits));
    codes.push((group >> zeros) << zeros);
  }
  // One call creates a flat text. Concatenated texts would be copied at the first comparison.
  return String.fromCharCode(...codes, bits);
}

/** Whether the first address of a network is in another network. */
function isWithin(key: string, network: string): boolean {
  const bits = network.charCodeAt(network.length - 1);
  const whole = 1 + Math.floor(bits / GROUP_BITS);
  if (key.length !== network.length || !key.startsWith(network.slice(0, whole))) return false;
  const rest = bits % GROUP_BITS;
  const difference = key.charCodeAt(whole) ^ network.charCodeAt(whole);
  return rest === 0 || difference >> (GROUP_BITS - rest) === 0;
}

/**
 * Returns the schema of a list of networks. It reads all elements in one pass, because Valibot's
 * schema of a list takes several times as long, and a list may have thousands of elements.
 */
export function networks() {
  return v.pipe(
    v.custom<readonly string[]>((value) => Array.isArray(value) && value.length > 0, NETWORKS),
    v.rawTransform<readonly string[], NetworkSet>(({ dataset, addIssue, NEVER }) => {
      const texts = dataset.value as string[];
      if (texts.length > MAX_NETWORKS) {
        addIssue({ message: faultText(() => `at most ${MAX_NETWORKS} items`) });
        return NEVER;
      }
      const parsed: Network[] = [];
      for (const [index, text] of texts.entries()) {
        const network = typeof text === "string" ? parseNetwork(text) : undefined;
        if (network) parsed.push(network);
        else addIssue({ path: [pathToItem(texts, index)], input: text, message: NETWORK });
      }
      return parsed.length === texts.length ? new NetworkSet([...texts], parsed) : NEVER;
    }),
  );
}
