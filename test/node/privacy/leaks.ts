/**
 * Texts that must not appear in any output. The keys are their descriptions. No other data contains
 * these texts, so each match is a leak.
 */
export type Markers = Readonly<Record<string, string>>;

/** A marker that was found, with its description, its form, and the name of the data. */
export interface Leak {
  readonly what: string;
  readonly form: string;
  readonly where: string;
}

/**
 * Searches stored and sent data for markers. It finds markers that are unchanged, in URL escapes,
 * in JSON escapes, in hex, or in base64 at any offset.
 *
 * @param where the data to search, as bytes or text, by name
 */
export function leaksIn(
  where: Readonly<Record<string, string | Buffer>>,
  markers: Markers,
): Leak[] {
  const forms = Object.entries(markers).flatMap(([what, text]) =>
    formsOf(text).map(([form, written]) => ({ what, form, written: written.toLowerCase() })),
  );
  return Object.entries(where).flatMap(([place, content]) => {
    // The comparison ignores case, because a secret in upper case is a leak too.
    const text = Buffer.from(content).toString("latin1").toLowerCase();
    return forms
      .filter(({ written }) => text.includes(written))
      .map(({ what, form }) => ({ what, form, where: place }));
  });
}

/** Returns all forms in which a text can be written. Each character stands for one byte. */
function formsOf(text: string): [form: string, written: string][] {
  const bytes = Buffer.from(text);
  const plain = bytes.toString("latin1");
  const forms: [form: string, written: string][] = [
    ["URL-encoded", encodeURIComponent(text)],
    ["URL-encoded in full", bytes.toString("hex").replace(/../g, "%$&")],
    ["JSON", JSON.stringify(text).slice(1, -1)],
    ["JSON in ASCII", text.replace(/[^ -~]/g, (letter) => `\\u${hex(letter)}`)],
    ["hex", bytes.toString("hex")],
    ...[0, 1, 2].flatMap((offset): [string, string][] => {
      const base64 = middleOfBase64(bytes, offset);
      const url = base64.replaceAll("+", "-").replaceAll("/", "_");
      return [
        [`base64 at ${offset}`, base64],
        [`base64url at ${offset}`, url],
      ];
    }),
  ];
  return [["plain", plain], ...forms.filter(([, written]) => written !== plain)];
}

function hex(letter: string): string {
  return letter.charCodeAt(0).toString(16).padStart(4, "0");
}

/**
 * Returns the base64 of a text without the characters that depend on the data before and after it.
 * `offset` is the number of bytes before the text, modulo 3.
 */
function middleOfBase64(bytes: Buffer, offset: number): string {
  const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
  const whole = shifted.subarray(0, shifted.length - (shifted.length % 3)).toString("base64");
  return whole.slice(offset === 0 ? 0 : 4);
}
