import { parseHeaderName } from "../../src/config/key-expression.ts";
import { wrongOptions } from "../admin/admin-error.ts";
import { quoted } from "../doctor/finding.ts";

/** Control characters, which no header field can have. A tab is allowed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const FORBIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/** The header fields of a described request, by their names in lower case. */
export class HeaderFields {
  readonly #values = new Map<string, string[]>();

  /**
   * Adds a field. Several fields of one name are joined when they are read.
   *
   * @param origin names the place of the field in messages, such as `-H`
   * @throws {AdminError} if no request can have such a field
   */
  add(name: string, value: string, origin: string): void {
    const parsed = parseHeaderName(name);
    if (parsed === undefined) {
      throw wrongOptions(
        `${origin}: ${name === "" ? "the name of a header field is missing" : `"${quoted(name).slice(0, 40)}" is not the name of a header field`}. Write ${origin === "-H" ? "-H " : ""}'name: value', such as 'x-api-key: abc'.`,
      );
    }
    const trimmed = value.trim();
    if (FORBIDDEN.test(trimmed)) {
      throw wrongOptions(
        `${origin}: the value of ${parsed} has a line break or another control character.`,
      );
    }
    const text = isByteString(trimmed) ? trimmed : utf8Bytes(trimmed);
    const values = this.#values.get(parsed);
    if (values) values.push(text);
    else this.#values.set(parsed, [text]);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** Removes all fields of a name. */
  delete(name: string): void {
    this.#values.delete(name.toLowerCase());
  }

  /** Adds a field unless there is one of this name. */
  addMissing(name: string, value: string, origin: string): void {
    if (!this.has(name)) this.add(name, value, origin);
  }

  /** Removes the fields of a name. @returns the first value */
  take(name: string): string | undefined {
    const [value] = this.#values.get(name) ?? [];
    this.#values.delete(name);
    return value;
  }

  /** Replaces the fields whose names the other fields have. */
  replaceBy(others: HeaderFields): void {
    for (const [name, values] of others.#values) this.#values.set(name, values);
  }

  /** Returns the fields as a Worker reads them: those of one name joined. Browsers join cookies by `;`. */
  toRecord(): Record<string, string> {
    return Object.fromEntries(
      [...this.#values].map(([name, values]) => [
        name,
        values.join(name === "cookie" ? "; " : ", "),
      ]),
    );
  }
}

/**
 * Reads the option `-H`: `name: value`, or `name;` for an empty value.
 *
 * @param remove is called for `name:` without a value, with which curl removes a field
 */
export function readField(
  field: string,
  origin: string,
  fields: HeaderFields,
  remove: (name: string) => void,
): void {
  // HTTP/2 sends the method and the URL in pseudo fields, such as `:authority: example.com`.
  if (/^:[a-z]+:/.test(field)) return;
  const colon = field.indexOf(":");
  const name = (colon === -1 ? field : field.slice(0, colon)).trim();
  const value = colon === -1 ? "" : field.slice(colon + 1).trim();
  if (colon === -1 && !name.endsWith(";")) {
    // The text is not printed: it may be a credential whose name is missing.
    throw wrongOptions(
      `${origin} has no colon. Write 'name: value', or 'name;' for an empty value.`,
    );
  }
  if (colon === -1) fields.add(name.slice(0, -1), "", origin);
  else if (value === "" && parseHeaderName(name)) remove(name.toLowerCase());
  else fields.add(name, value, origin);
}

/** Whether each character stands for one byte, as in the values that a Worker reads. */
function isByteString(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters of one byte
  return /^[\u0000-\u00ff]*$/.test(text);
}

/** Returns the bytes that a program sends for a text, each as one character. */
function utf8Bytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
