import fc from "fast-check";
import { expect, test } from "vitest";
import { faultsIn } from "../../../src/config/define.ts";
import { propertyRuns } from "../../suite/runs.ts";

const RULE_FIELDS = [
  "name match key limit window limits capacity maxReserved start shards cost count tiers exempt ban",
  "mode tellOrigin onError localShare notify lease retryJitter response for max windowMs path keys except rate minute",
]
  .join(" ")
  .split(" ");
const TOP_FIELDS =
  "rules origin store clock prefix timeoutMs headers ipv6Prefix caseSensitivePaths quotaPath denialLog jwt nativeLimiter usage custom keys".split(
    " ",
  );
const NESTED = [
  "hosts methods paths except by limits limit window status ips headers url binding secret jwks alg",
  "algs keys body path header",
]
  .join(" ")
  .split(" ");

/** Texts that look like values of a configuration, and any other value. */
const text = fc.oneof(
  fc.string(),
  fc.stringMatching(/^[\w/:.*?|{}@#%&=,+ ()[\]$^\\-]{0,30}$/),
  fc.constantFrom("__proto__", "constructor", "toString", "1 m", "ip", "/a", "GET", "10r/s"),
);
const value = fc.letrec<{ any: unknown; object: object }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.double(),
    fc.anything(),
    fc.array(tie("any")),
    tie("object"),
  ),
  object: fc.dictionary(fc.oneof(fc.constantFrom(...NESTED), text), tie("any"), { maxKeys: 3 }),
}));

function objectOf(fields: readonly string[]) {
  return fc.dictionary(fc.constantFrom(...fields), value.any, { maxKeys: 6 });
}

test("faults are found and explained for every input, on one line each", () => {
  const config = fc.oneof(
    value.any,
    objectOf(TOP_FIELDS),
    fc.record({ rules: fc.array(objectOf(RULE_FIELDS), { maxLength: 2 }) }),
  );
  const property = fc.property(config, (input) => {
    for (const { path, message } of faultsIn(input)) {
      expect(path).not.toContain("\n");
      expect(message).toMatch(/^(got |missing; |unknown field; ).+$/);
      expect(message.length).toBeLessThan(2000);
    }
  });
  fc.assert(property, propertyRuns(2000));
});
