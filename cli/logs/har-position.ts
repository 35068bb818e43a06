import { TokenType } from "@streamparser/json";

/** The depth of the list `log.entries`. */
const ENTRIES_DEPTH = 3;
/** HAR needs 7 levels. Deeper values, such as in fields of one program, are limited by memory. */
const MAX_DEPTH = 100;

/** Follows where the tokens of a HAR file are. */
export class HarPosition {
  /** The number of the entry that contains the last token; 0 before the first entry. */
  entry = 0;
  #depth = 0;
  #isInEntries = false;
  #lastText: unknown;
  /** The last names in the file's object, and in the object `log`. */
  readonly #names: unknown[] = [];

  /**
   * @returns true after the last token of an entry
   * @throws {Error} if values are nested too deeply
   */
  isEntryEnd(token: TokenType, value: unknown): boolean {
    switch (token) {
      case TokenType.LEFT_BRACE:
      case TokenType.LEFT_BRACKET:
        this.#open(token);
        return false;
      case TokenType.RIGHT_BRACE:
      case TokenType.RIGHT_BRACKET:
        this.#depth--;
        if (this.#depth < ENTRIES_DEPTH) this.#isInEntries = false;
        return this.#isInEntries && this.#depth === ENTRIES_DEPTH;
      case TokenType.COLON:
        if (this.#depth < ENTRIES_DEPTH) this.#names[this.#depth] = this.#lastText;
        return false;
      case TokenType.COMMA:
        return false;
      default:
        this.#lastText = this.#depth < ENTRIES_DEPTH ? value : undefined;
        return this.#startsEntry();
    }
  }

  #open(token: TokenType): void {
    const isEntries =
      token === TokenType.LEFT_BRACKET &&
      this.#depth === ENTRIES_DEPTH - 1 &&
      this.#names[1] === "log" &&
      this.#names[2] === "entries";
    this.#startsEntry();
    if (++this.#depth > MAX_DEPTH) throw new Error("its values are nested too deeply");
    if (isEntries) this.#isInEntries = true;
  }

  #startsEntry(): boolean {
    const isEntry = this.#isInEntries && this.#depth === ENTRIES_DEPTH;
    if (isEntry) this.entry++;
    return isEntry;
  }
}
