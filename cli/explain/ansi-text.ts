/** The characters of the escapes with one letter in `$'…'`. */
const LETTERS: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  e: "\x1b",
  E: "\x1b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

const ESCAPE =
  /(?:\\(?:x[\dA-Fa-f]{1,2}|[0-7]{1,3}))+|\\(?:u[\dA-Fa-f]{1,4}|U[\dA-Fa-f]{1,8}|c[\s\S]|[\s\S])/g;
const BYTE = /\\(?:x([\dA-Fa-f]{1,2})|([0-7]{1,3}))/g;

/**
 * Returns the text of bash's quotes `$'…'`. Browsers use them for a request with line breaks or `!`.
 *
 * @param body the text between the quotes
 */
export function ansiText(body: string): string {
  return body.replace(ESCAPE, (sequence) => {
    const kind = sequence.charAt(1);
    if (/[x0-7]/.test(kind) && sequence.length > 2) return bytesText(sequence);
    if (kind === "u" || kind === "U") return characterOf(Number.parseInt(sequence.slice(2), 16));
    if (kind === "c" && sequence.length > 2) {
      return String.fromCharCode(sequence.charCodeAt(2) & 0x1f);
    }
    if (/[0-7]/.test(kind)) return String.fromCharCode(Number(kind));
    return LETTERS[kind] ?? (/["'?\\]/.test(kind) ? kind : sequence);
  });
}

/** Decodes escaped bytes as UTF-8 or, if they are not, as Latin-1, as some browsers write them. */
function bytesText(escapes: string): string {
  const bytes = [...escapes.matchAll(BYTE)].map(
    ([, hex, octal]) => Number.parseInt(hex ?? octal ?? "0", hex === undefined ? 8 : 16) & 0xff,
  );
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(bytes),
    );
  } catch {
    return bytes.map((byte) => String.fromCharCode(byte)).join("");
  }
}

function characterOf(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
}
