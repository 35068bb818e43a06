import { foldCode, foldName, isSuffix, NameReader, OPEN, skipStart } from "./lenient-name.ts";

/** A node of the trie of names. Each edge is a folded code unit. */
interface Node {
  readonly next: Map<number, Node>;
  /** The names that end at this node. Different names may have the same folded form. */
  readonly names: string[];
}

/**
 * Finds the names that lenient servers may read in a sent name. It reads each sent name once for
 * all names together, because a request may have thousands of names, and a configuration hundreds.
 */
export class NameIndex {
  readonly #root: Node = { next: new Map(), names: [] };
  /** All names of the index. {@link find} returns this list itself if a sent name may be any name. */
  readonly all: readonly string[];

  readonly #names: ReadonlySet<string>;
  /** The names by their folded form, for sent names that all servers read in one way. */
  readonly #byFolded = new Map<string, readonly string[]>();

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    this.all = [...this.#names];
    for (const name of this.all) {
      let node = this.#root;
      for (const code of foldName(name)) {
        const child = node.next.get(code) ?? { next: new Map(), names: [] };
        node.next.set(code, child);
        node = child;
      }
      node.names.push(name);
      this.#byFolded.set(String.fromCharCode(...foldName(name)), node.names);
    }
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether a name of the index may be read in a sent name that begins with this code unit. */
  readonly mayBegin = (code: number): boolean =>
    !isPlain(code) || this.#root.next.has(foldCode(code));

  /**
   * Returns the names that some server may read in a sent name. For example, some servers read
   * `name[key]` as a part of `name`. If the sent name is encoded twice, the result is {@link all}.
   */
  find(sent: string): readonly string[] {
    if (PLAIN.test(sent)) return this.#byFolded.get(sent.toLowerCase()) ?? NONE;
    if (isEncodedTwice(sent)) return this.all;
    const reader = new NameReader(sent);
    let code = skipStart(reader);
    let node: Node | undefined = this.#root;
    let found: readonly string[] = NONE;
    while (node) {
      // A bracket after the name begins a key, or ends the name.
      if (node.names.length > 0 && (code === OPEN || isSuffix(code, reader.copy()))) {
        found = found === NONE ? node.names : [...found, ...node.names];
      }
      if (code <= 0) break;
      node = node.next.get(foldCode(code));
      code = reader.next();
    }
    return found;
  }
}

/** Whether lenient servers read a code unit at the start of a name as itself, except for case. */
function isPlain(code: number): boolean {
  const letter = code | 0x20;
  return (letter >= 0x61 && letter <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x5f;
}

const NONE: readonly string[] = [];
/** Matches names in which lenient servers ignore only case. */
const PLAIN = /^[\w-]+$/;

function isEncodedTwice(sent: string): boolean {
  if (!sent.includes("%")) return false;
  const reader = new NameReader(sent);
  for (let code = reader.next(); code !== -1; code = reader.next()) if (code === 0x25) return true;
  return false;
}
