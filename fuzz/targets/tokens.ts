import fc from "fast-check";
import { EventStreamParser } from "../../src/llm/body-text.ts";
import { UsageTally } from "../../src/llm/token-counts.ts";
import { createTarget, inTime } from "../property.ts";

const USAGE_NAMES = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "input_tokens",
  "output_tokens",
  "cache_read_input_tokens",
  "prompt_tokens_details",
  "cached_tokens",
];

/** JSON values whose objects have the names that Weir reads, and `__proto__`. */
const { message } = fc.letrec((tie) => ({
  message: fc.oneof(
    { depthSize: "small" },
    fc.nat(1000),
    fc.constantFrom(null, "", -1, 0.5, 1e300, "7", true),
    fc.dictionary(
      fc.constantFrom("usage", "x_groq", "response", "message", "__proto__", ...USAGE_NAMES),
      tie("message"),
    ),
  ),
}));

/** Parts of streams of events, so that lines and events are often almost valid. */
const part = fc.oneof(
  fc.constantFrom("data:", "data: ", "data", ":", "event: x", "[DONE]", "\ufeff", "…", "😀", "\0"),
  fc.constantFrom("\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n"),
  message.map((value) => `data: ${JSON.stringify(value)}\n\n`),
  fc.string({ maxLength: 5 }),
);

const scenario = fc.record({
  text: fc.array(part, { maxLength: 20 }).map((parts) => parts.join("")),
  cuts: fc.array(fc.nat(200), { maxLength: 10 }),
});

/** The target for the bodies of language models' responses. */
export const tokensTarget = createTarget(
  "tokens",
  "a stream has the same events in pieces of any length, and counts that are whole numbers",
  scenario,
  ({ text, cuts }) => {
    // The parser gets text that TextDecoder has decoded, and TextDecoder drops a byte order mark.
    const stream = text.replace(/^\ufeff/, "").toWellFormed();
    const events = inTime(() => eventsIn(piecesOf(stream, cuts)));
    const expected = JSON.stringify(expectedEvents(stream));
    if (JSON.stringify(events) !== expected) {
      throw new Error(`has the events ${JSON.stringify(events)} instead of ${expected}`);
    }
    const tally = new UsageTally();
    for (const event of events) {
      const value = tryParse(event);
      tally.add(value);
    }
    for (const [kind, count] of Object.entries(tally.counts() ?? {})) {
      if (!Number.isSafeInteger(count) || count < 0) throw new Error(`${kind} is ${count}`);
    }
  },
);

function eventsIn(pieces: readonly string[]): string[] {
  const events: string[] = [];
  const parser = new EventStreamParser((data) => events.push(data));
  for (const piece of pieces) parser.push(piece);
  parser.end();
  return events;
}

function piecesOf(text: string, cuts: readonly number[]): string[] {
  const sorted = [0, ...cuts.filter((cut) => cut < text.length), text.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => text.slice(sorted[index], end));
}

/** The data of an event are its lines with the field `data`. An empty line ends an event. */
function expectedEvents(stream: string): string[] {
  const lines = stream.split(/\r\n|\n|\r/);
  const events: string[][] = [[]];
  for (const line of lines) {
    if (line === "") events.push([]);
    else events.at(-1)?.push(...(/^data(?:$|: ?(.*)$)/s.exec(line)?.slice(1, 2) ?? []));
  }
  return events.filter((data) => data.length > 0).map((data) => data.join("\n"));
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
