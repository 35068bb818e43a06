import { wrongOptions } from "../admin/admin-error.ts";
import { ansiText } from "./ansi-text.ts";

/** The words of a command. */
export interface CommandWords {
  readonly words: readonly string[];
  /** Whether the command ends at an `&` with a text behind it, as in an unquoted URL with two parameters. */
  readonly endsAtAmpersand: boolean;
}

/**
 * Splits a command for a POSIX shell into words, and removes the quotes. Nothing is executed or expanded.
 * shell-quote is not used: it drops an unclosed quote without an error, and it returns an empty word for each
 * continued line, as for `-d ''`.
 *
 * @throws {AdminError} if a quote is not closed, or if only the shell of the user knows a part of the text
 */
export function shellWords(text: string): CommandWords {
  return new Reader(text).read();
}

const BLANK = /[ \t\r\n]/;
/** Characters that end a command or redirect it, if they are not quoted. */
const OPERATOR = /[|&;()<>]/;
/** Matches what begins an expansion after `$`. */
const EXPANSION = /[A-Za-z_0-9{(@*#?$!-]/;

class Reader {
  readonly #text: string;
  readonly #words: string[] = [];
  #at = 0;
  /** Undefined between two words. */
  #word: string | undefined;
  #isQuoted = false;
  /** Whether the next word is the file of a redirection. */
  #skipsWord = false;

  constructor(text: string) {
    this.#text = text;
  }

  read(): CommandWords {
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at);
      if (BLANK.test(char)) {
        this.#endWord();
        this.#at++;
        if (char === "\n" && !this.#continues()) break;
      } else if (char === "#" && this.#word === undefined) {
        const end = this.#text.indexOf("\n", this.#at);
        this.#at = end === -1 ? this.#text.length : end;
      } else if (OPERATOR.test(char)) {
        if (this.#isEnd(char)) break;
      } else {
        this.#add(this.#piece(char));
      }
    }
    this.#endWord();
    const rest = this.#text.slice(this.#at, this.#at + 2);
    return { words: this.#words, endsAtAmpersand: /^&[^\s&>]/.test(rest) };
  }

  /** Whether the command continues on the next line, although the line before it has no backslash at its end. */
  #continues(): boolean {
    if (this.#words.length === 0) return true;
    while (BLANK.test(this.#text.charAt(this.#at))) this.#at++;
    return this.#text.charAt(this.#at) === "-";
  }

  /** Reads an operator. @returns whether it ends the command; a redirection does not */
  #isEnd(operator: string): boolean {
    if (operator !== "<" && operator !== ">") return true;
    // In `2>file`, the number is no word.
    if (!this.#isQuoted && /^\d$/.test(this.#word ?? "")) this.#word = undefined;
    this.#endWord();
    while (/[<>&|]/.test(this.#text.charAt(this.#at))) this.#at++;
    this.#skipsWord = true;
    return false;
  }

  /** Reads one character or one quoted text. @param char the current character */
  #piece(char: string): string {
    if (char === "'") return this.#singleQuoted();
    if (char === '"') return this.#doubleQuoted(this.#at + 1);
    if (char === "\\") return this.#escaped();
    if (char === "`") throw notExpanded("a backtick");
    if (char === "$") {
      const next = this.#text.charAt(this.#at + 1);
      if (next === "'") return this.#ansiQuoted();
      if (next === '"') return this.#doubleQuoted(this.#at + 2);
      this.#refuseExpansion(this.#at);
    }
    this.#at++;
    return char;
  }

  #escaped(): string {
    const lineEnd = this.#lineEnd(this.#at + 1);
    if (lineEnd > 0) {
      this.#at += 1 + lineEnd;
      return "";
    }
    this.#isQuoted = true;
    const char = this.#text.charAt(this.#at + 1);
    this.#at += 2;
    return char;
  }

  /** @returns the number of characters of the line's end at this place; 0 if there is none */
  #lineEnd(at: number): number {
    if (this.#text.startsWith("\n", at)) return 1;
    return this.#text.startsWith("\r\n", at) ? 2 : 0;
  }

  #doubleQuoted(start: number): string {
    this.#isQuoted = true;
    let result = "";
    let at = start;
    for (; at < this.#text.length; at++) {
      const char = this.#text.charAt(at);
      if (char === '"') {
        this.#at = at + 1;
        return result;
      }
      if (char === "`") throw notExpanded("a backtick");
      if (char === "$") this.#refuseExpansion(at);
      if (char !== "\\") {
        result += char;
        continue;
      }
      const lineEnd = this.#lineEnd(at + 1);
      const next = this.#text.charAt(at + 1);
      if (lineEnd === 0) result += /["\\$`]/.test(next) ? next : char + next;
      at += lineEnd || 1;
    }
    throw notClosed('"');
  }

  #ansiQuoted(): string {
    this.#isQuoted = true;
    const start = this.#at + 2;
    for (let at = start; at < this.#text.length; at++) {
      const char = this.#text.charAt(at);
      if (char === "\\") at++;
      else if (char === "'") {
        this.#at = at + 1;
        return ansiText(this.#text.slice(start, at));
      }
    }
    throw notClosed("$'");
  }

  #singleQuoted(): string {
    this.#isQuoted = true;
    const start = this.#at + 1;
    const end = this.#text.indexOf("'", start);
    if (end === -1) throw notClosed("'");
    this.#at = end + 1;
    return this.#text.slice(start, end);
  }

  #refuseExpansion(at: number): void {
    // A name is short, so only this many characters are examined.
    const rest = this.#text.slice(at + 1, at + 41);
    if (!EXPANSION.test(rest.charAt(0))) return;
    // Other texts may be a part of a password in the wrong quotes.
    const name = /^\{?([A-Z_][A-Z0-9_]*)(?![a-z0-9])/.exec(rest)?.[1];
    throw notExpanded(name === undefined ? "a $" : `$${name}`);
  }

  #add(piece: string): void {
    // A continued line begins no word.
    if (piece === "" && !this.#isQuoted) return;
    this.#word = (this.#word ?? "") + piece;
  }

  #endWord(): void {
    if (this.#word !== undefined && !this.#skipsWord) this.#words.push(this.#word);
    if (this.#word !== undefined) this.#skipsWord = false;
    this.#word = undefined;
    this.#isQuoted = false;
  }
}

function notClosed(quote: string) {
  return wrongOptions(
    `The curl command has a ${quote} without the quote that closes it. Copy the whole command; to avoid the quotes of your shell, pass it on standard input: weir explain --curl - < command.txt`,
  );
}

function notExpanded(text: string) {
  return wrongOptions(
    `The curl command has ${text} that only your shell can replace. Write the value itself, or put the text into single quotes if it is meant literally.`,
  );
}
