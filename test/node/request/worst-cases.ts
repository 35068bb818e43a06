/**
 * Makes a text that may take long to read, and that has approximately the given number of bytes.
 */
export type WorstCase = (bytes: number) => string;

function repeated(unit: string, { before = "", after = "" } = {}): WorstCase {
  return (bytes) => {
    const left = bytes - Buffer.byteLength(before + after);
    return before + unit.repeat(Math.max(0, Math.floor(left / Buffer.byteLength(unit)))) + after;
  };
}

/**
 * Combining marks of different classes. The mark of the highest class comes first, so normalization
 * must sort the marks.
 */
const MARKS = "\u0345\u035d\u0315\u0301\u0323\u0321\u05b0\u0334";

/** Units that may make regular expressions, decoders or normalization slow if they are repeated. */
const UNITS: Readonly<Record<string, string>> = {
  spaces: " ",
  tabs: "\t",
  "non-breaking spaces": "\u00a0",
  "spaces of Unicode": "\u3000",
  dots: ".",
  slashes: "/",
  backslashes: "\\",
  "dot segments": "../",
  "segments of a letter": "a/",
  semicolons: ";",
  commas: ",",
  equals: "=",
  "short pairs": "a=b;",
  ampersands: "&",
  "a parameter with a byte that is not UTF-8": "p1=%ffa&",
  "names that are encoded twice": "%25&",
  quotes: '"',
  "escaped quotes": '\\"',
  "octal escapes": "\\163",
  brackets: "[",
  "pairs of brackets": "[]",
  "brackets of digits": "[1",
  colons: ":",
  zeros: "0",
  "percent signs": "%",
  "escaped percent signs": "%25",
  "nested escapes": "%2525",
  "nested escapes of single digits": "%%32%35",
  "escaped letters": "%61",
  "escaped NULs": "%00",
  "escaped spaces": "%20",
  "escaped slashes": "%2f",
  "escaped dot segments": "%2e%2e%2f",
  "escaped semicolons": "%3b",
  "bytes that are not UTF-8": "%ff",
  "halves of characters": "%e2%82",
  "overlong UTF-8": "%c1%ac",
  "escapes of no standard": "%u006c",
  "percent signs as escapes of no standard": "%u0025",
  "invalid escapes": "%zz",
  ligatures: "\ufdfa",
  "escaped ligatures": "%ef%b7%ba",
  "wide letters": "\uff4c",
  "wide slashes": "%ef%bc%8f",
  "letters of one-way case": "\u0131",
  "dotted capitals": "\u0130",
  "characters without a width": "\u200b",
  "surrogate pairs": "\ud83d\ude00",
  mark: "\u0301",
  "marks out of order": MARKS,
  "two marks out of order": "\u0301\u0323",
  "escaped marks out of order": encodeURIComponent(MARKS),
  "escaped marks, twice": encodeURIComponent(encodeURIComponent("\u0301\u0323")),
  "as many marks on letters as are kept": `a${MARKS}`,
  "segments of marks": `a${encodeURIComponent(MARKS)}/`,
  "percent signs of all kinds": `${encodeURIComponent(`％41\\．${MARKS}％41．`)}%5c\\%25%25`,
  "letters of all kinds": `%u0061\\%2e${encodeURIComponent("İ𝒜ᲀﷺ")}..%5c`,
  "segments of ligatures": "%ef%b7%ba/",
  "segments of a parameter": ";a/",
  "segments of blanks": "%20/",
  "segments of escaped NULs": "%00/",
  "Hangul letters": "\u1100\u1161\u11a8",
  base64: "QUJD",
  "base64 and other characters": "Q!",
  words: "Bearer ",
  "at signs": "@",
  "names with escapes": "%zz%zz=1;",
  "similar names": "sie=1;",
  "names behind white space": " sie=",
  "words of a letter": "a ",
  "similar names with brackets": "sid[x=1;",
  "similar names with escapes": "si%64%zz=;",
  "one cookie": "sid=1;",
  "cookies with brackets": "sid1[x=1;",
  "many cookies": "; sid7x=1; sid8=2",
  "similar parameters": "api_kex=1&",
  "similar parameters with brackets": "api_key[x&",
  "parts of a token": "ey.",
  "words and semicolons": "a ;",
  "signs of base64url": "-_",
};

/**
 * Three texts for each unit: one of units only, one of units between two letters, and one with a
 * letter before each unit.
 */
export const WORST_CASES: readonly (readonly [name: string, make: WorstCase])[] = Object.entries(
  UNITS,
).flatMap(([name, unit]) => [
  [name, repeated(unit)],
  [`${name} between letters`, repeated(unit, { before: "a", after: "a" })],
  [`${name} in a pattern`, repeated(`a${unit}`, { after: "!" })],
]);
