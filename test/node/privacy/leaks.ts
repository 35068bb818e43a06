/** Something that must not be seen anywhere: what it is, and a text that nothing else contains. */
export type Markers = Readonly<Record<string, string>>;

/** Where a marker was found, and in which form. */
export interface Leak {
  readonly what: string;
  readonly form: string;
  readonly where: string;
}

/**
 * Looks for markers in what was kept or told: as they are, in URL escapes, in JSON's, in base64 wherever
 * its letters begin, in hex.
 *
 * @param where what was looked through, by the name of the place; bytes, or text
 */
export function leaksIn(
  where: Readonly<Record<string, string | Buffer>>,
  markers: Markers,
): Leak[] {
  const forms = Object.entries(markers).flatMap(([what, text]) =>
    formsOf(text).map(([form, written]) => ({ what, form, written: written.toLowerCase() })),
  );
  return Object.entries(where).flatMap(([place, content]) => {
    // Letters are compared by no case: who writes a secret in upper case has written it.
    const text = Buffer.from(content).toString("latin1").toLowerCase();
    return forms
      .filter(({ written }) => text.includes(written))
      .map(({ what, form }) => ({ what, form, where: place }));
  });
}

/** Ways to write a text that are not the same, as the bytes of each, one character for a byte. */
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

/** The letters that depend on nothing before or behind the text, when so many bytes are before it. */
function middleOfBase64(bytes: Buffer, offset: number): string {
  const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
  const whole = shifted.subarray(0, shifted.length - (shifted.length % 3)).toString("base64");
  return whole.slice(offset === 0 ? 0 : 4);
}
