/** Makes a text of about so many bytes that is meant to take long to read. */
export type WorstCase = (bytes: number) => string;

function repeated(unit: string, { before = "", after = "" } = {}): WorstCase {
  return (bytes) => {
    const left = bytes - Buffer.byteLength(before + after);
    return before + unit.repeat(Math.max(0, Math.floor(left / Buffer.byteLength(unit)))) + after;
  };
}

/** Marks of many combining classes, the highest first: what normalization has to put in order. */
const MARKS = "\u0345\u035d\u0315\u0301\u0323\u0321\u05b0\u0334";

/** Runs of what regular expressions, decoders and normalization go back and forth over. */
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
  "pairs of nothing": "a=b;",
  ampersands: "&",
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
  "escapes in halves": "%%32%35",
  "escaped letters": "%61",
  "escaped NULs": "%00",
  "escaped spaces": "%20",
  "escaped slashes": "%2f",
  "escaped dot segments": "%2e%2e%2f",
  "escaped semicolons": "%3b",
  "bytes that are not UTF-8": "%ff",
  "halves of characters": "%e2%82",
  "characters in too many bytes": "%c1%ac",
  "escapes that are no standard": "%u006c",
  "such escapes of percent signs": "%u0025",
  "escapes that are none": "%zz",
  ligatures: "\ufdfa",
  "escaped ligatures": "%ef%b7%ba",
  "wide letters": "\uff4c",
  "wide slashes": "%ef%bc%8f",
  "letters of one-way case": "\u0131",
  "dotted capitals": "\u0130",
  "no width": "\u200b",
  "surrogate pairs": "\ud83d\ude00",
  mark: "\u0301",
  "marks out of order": MARKS,
  "two marks out of order": "\u0301\u0323",
  "escaped marks out of order": encodeURIComponent(MARKS),
  "escaped marks, twice": encodeURIComponent(encodeURIComponent("\u0301\u0323")),
  "marks on letters, as many as stay": `a${MARKS}`,
  "segments of marks": `a${encodeURIComponent(MARKS)}/`,
  "percent signs of every kind": `${encodeURIComponent(`％41\\．${MARKS}％41．`)}%5c\\%25%25`,
  "letters of every kind": `%u0061\\%2e${encodeURIComponent("İ𝒜ᲀﷺ")}..%5c`,
  "segments of ligatures": "%ef%b7%ba/",
  "segments of a parameter": ";a/",
  "segments of blanks": "%20/",
  "segments of escaped NULs": "%00/",
  "Hangul letters": "\u1100\u1161\u11a8",
  base64: "QUJD",
  "base64 and rubbish": "Q!",
  words: "Bearer ",
  "at signs": "@",
  "names with escapes": "%zz%zz=1;",
  "names almost right": "sie=1;",
  "names behind white space": " sie=",
  "words of a letter": "a ",
  "names almost right, with brackets": "sid[x=1;",
  "names almost right, with escapes": "si%64%zz=;",
  "parameters almost right": "api_kex=1&",
  "parameters almost right, with brackets": "api_key[x&",
  "parts of a token": "ey.",
  "words and semicolons": "a ;",
  "signs of base64url": "-_",
};

/** The runs as they are, within letters, and with what makes a reader go into them. */
export const WORST_CASES: readonly (readonly [name: string, make: WorstCase])[] = Object.entries(
  UNITS,
).flatMap(([name, unit]) => [
  [name, repeated(unit)],
  [`${name} between letters`, repeated(unit, { before: "a", after: "a" })],
  [`${name} in a pattern`, repeated(`a${unit}`, { after: "!" })],
]);
