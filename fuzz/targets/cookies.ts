import fc from "fast-check";
import { SentValues } from "../../src/request/sent-values.ts";
import { COOKIE_SERVERS } from "../cookie-servers.ts";
import { createTarget } from "../property.ts";

/** The maximum number of values that are kept for comparison with later fields. */
const KEPT_VALUES = 100_000;
const NAME = "sid";

/** Few pieces, so that a server often reads one value from different fields. */
const PIECES = [
  ...["a", "b", "c", '"', '"', "\\", "%", "+", " ", "\t", ",", "=", "'", "\u00a0", "\u200b"],
  ...["%61", "%2561", "%22", "%5C", "%2B", "%ff", "%00", "%zz", "%u0061", "%20", "%C1%A1"],
  ...['\\"', "\\141", "\\\\", "\\a"],
];
const BESIDE = [
  ...[
    "",
    "",
    "x=1; ",
    "x=1;",
    "sid; ",
    "=; ",
    "=sid=a; ",
    "$Version=1; ",
    'x="; ',
    "x=1 ",
    "x=1, ",
  ],
  ...["sid=b; ", "SID=b; ", "sid[]=b; ", "sid%00=b; ", ", ", "x; "],
];
const NAMES = ["sid", "sid", "sid", " sid", "sid ", "\tsid\t", "SID", "s%69d", "sid[]", "[sid]"];

const field = fc
  .record({
    before: fc.constantFrom(...BESIDE),
    name: fc.constantFrom(...NAMES),
    value: fc.array(fc.constantFrom(...PIECES), { maxLength: 5 }),
    after: fc.constantFrom("", "", "; x=1", ";", ", y=2", "; sid=c", ' x="1"', " ; SID=c"),
  })
  .map(({ before, name, value, after }) => `${before}${name}=${value.join("")}${after}`);

/** Maps each value that a server has read to the text that Weir counted for it. */
const counted = new Map<string, string>();

/** The target for cookies. Two spellings of a value that one server reads must count as one client. */
export const cookiesTarget = createTarget(
  "cookies",
  "fields from which a server reads the same cookie never count as two clients",
  field,
  (cookie) => {
    const headers = { get: () => cookie, has: () => true, keys: () => ["cookie"] };
    const key = new SentValues({ headers, search: "", hasHiddenQuery: false }).cookieKey(NAME);
    if (!key) return;
    if (counted.size >= KEPT_VALUES) counted.clear();
    for (const [server, read] of Object.entries(COOKIE_SERVERS)) {
      const value = read(cookie, NAME);
      if (!value) continue;
      const place = JSON.stringify([server, value]);
      const known = counted.get(place);
      if (known !== undefined && known !== key) {
        throw new Error(`${server} reads ${value}, which counts as ${known} and as ${key}`);
      }
      counted.set(place, key);
    }
  },
);
