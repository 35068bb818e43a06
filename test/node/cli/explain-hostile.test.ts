import fc from "fast-check";
import { expect, it } from "vitest";
import { readCurl } from "../../../cli/explain/curl.ts";
import { readHar } from "../../../cli/explain/request.ts";
import { cpuTimeMs } from "../../../fuzz/property.ts";

// Commands and files that nobody writes by hand. With quadratic time, 256 KiB would take more than a minute.

const SIZE = 256 * 1024;
const MAX_MS = 5000;
const URL_A = "https://api.example.com/a";

const fill = (piece: string) => piece.repeat(Math.floor(SIZE / piece.length));

const COMMANDS: Readonly<Record<string, string>> = {
  "single quotes": `curl ${URL_A} ${fill("'")}`,
  "double quotes": `curl ${URL_A} ${fill('"')}`,
  "an open quote": `curl '${URL_A}${fill("a")}`,
  backslashes: `curl "${URL_A}${fill("\\")}"`,
  "escaped bytes": `curl ${URL_A} -d $'${fill("\\x41")}'`,
  "short quoted texts": `curl ${URL_A} -d ${fill("$''")}`,
  "dollar signs": `curl ${URL_A} '${fill("$")}'`,
  "joined lines": `curl ${URL_A} ${fill("\\\n")}`,
  "empty lines": `curl ${fill("\n")}`,
  words: `curl ${fill("a ")}`,
  "one word of flags": `curl ${URL_A} -${fill("k")}`,
  "many flags": `curl ${URL_A} ${fill("-k ")}`,
  "many fields of one name": `curl ${URL_A} ${fill("-H a:1 ")}`,
  "many texts of the body": `curl ${URL_A} ${fill("-d a ")}`,
  "many parameters": `curl ${URL_A} ${fill("--url-query a ")}`,
  "many encoded texts": `curl ${URL_A} -G ${fill("--data-urlencode = ")}`,
  "many cookies": `curl ${URL_A} ${fill("-b a=1 ")}`,
  "many redirections": `curl ${URL_A} ${fill("2> a ")}`,
  brackets: `curl '${URL_A}${fill("[1")}'`,
  braces: `curl '${URL_A}${fill("{,")}'`,
  "variables before curl": `${fill("a=b ")}curl ${URL_A}`,
  "spaces in a value": `curl ${URL_A} -H 'a: 1${fill(" ")}1'`,
  "a long name": `curl ${URL_A} -H '${fill("a")}: 1'`,
  "escapes for cmd.exe": `curl ^"${URL_A}^" ${fill("^")}`,
  "quotes for cmd.exe": `curl ^"${URL_A}${fill('^"')}`,
  "backslashes for cmd.exe": `curl ^"${URL_A}${fill("\\")}`,
};

it.each(Object.entries(COMMANDS))("reads or refuses %s in linear time", (_, command) => {
  const start = cpuTimeMs();
  const refusal = messageOf(() => readCurl(command));
  expect(cpuTimeMs() - start).toBeLessThan(MAX_MS);
  expect(refusal.length).toBeLessThan(400);
});

const PIECES = [
  ..."'\"\\\n$^&|><;# {}[]%=@?-é\0".split(""),
  ..." $' ^\" \\x4 \\u -- -H -d -X -u -b -G -k --json --url-query --data-urlencode a: host: //".split(
    " ",
  ),
  "https://example.com/",
];

it("reads or refuses any text, and what it reads is a request", () => {
  const texts = fc.array(fc.constantFrom(...PIECES), { maxLength: 30 });
  fc.assert(
    fc.property(texts, (pieces) => {
      messageOf(() => {
        const { url, fields } = readCurl(`curl ${pieces.join("")}`);
        return new Request(url, { headers: fields.toRecord() });
      });
    }),
    { numRuns: 5000 },
  );
});

/** @returns an empty text if the function throws nothing. Only a refusal is caught */
function messageOf(run: () => unknown): string {
  try {
    run();
    return "";
  } catch (error) {
    if (!(error instanceof Error) || !("exitCode" in error)) throw error;
    expect(error.exitCode).toBe(1);
    return error.message;
  }
}

it("lists at most thirty entries of a HAR file", () => {
  const entry = {
    request: { method: "GET", url: `${URL_A}/${"a".repeat(500)}?k=secret`, headers: [] },
  };
  const message = messageOf(() =>
    readHar(JSON.stringify({ log: { entries: new Array(20_000).fill(entry) } }), undefined),
  );
  expect(message.split("\n")).toHaveLength(32);
  expect(message).toMatch(
    /^The HAR file has 20000 entries\. .*\n {3}1 {2}GET https.*….*… and 19970 more$/s,
  );
  expect(message).not.toContain("secret");
});

it.each([
  [
    "an open object",
    '{"log":{"entries":[{"request":{"headers":[{"name":"cookie","value":"secret"}',
  ],
  ["brackets without end", "[".repeat(1_000_000)],
  ["an empty text", ""],
])("refuses a HAR file with %s, and quotes nothing of it", (_, text) => {
  expect(messageOf(() => readHar(text, undefined))).toMatch(
    /^The HAR file is not JSON\.(?!.*secret)/,
  );
});

it("prints no character of a HAR file that a terminal obeys", () => {
  const request = {
    method: "G\u001b[31mET",
    url: "https://a\u202e.example.com/\u0007",
    headers: [],
  };
  const message = messageOf(() => readHar(JSON.stringify([{ request }, { request }]), undefined));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be missing
  expect(message).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
});

it.each([7.5, 1e25, -1, "12", null])("ignores the size %s of a body in a HAR file", (bodySize) => {
  const request = { method: "POST", url: URL_A, headers: [], bodySize };
  expect(readHar(JSON.stringify({ request }), undefined).fields.has("content-length")).toBe(false);
});
