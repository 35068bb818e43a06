import * as v from "valibot";
import { fields, integer, oneOf, parsed } from "./fields.ts";
import { OriginSchema } from "./origin.ts";
import { RuleSchema } from "./rule.ts";

export const MAX_RULES = 10_000;

const RULES = `a list of rules, at most ${MAX_RULES}`;
const PREFIX = "1 to 64 of A-Z, a-z, 0-9, -, _ and .";

const Rules = v.pipe(
  v.array(RuleSchema, RULES),
  v.maxLength(MAX_RULES, RULES),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!Array.isArray(dataset.value)) return;
    const seen = new Map<string, number>();
    for (const [index, rule] of dataset.value.entries()) {
      const name: unknown = rule?.name;
      if (typeof name !== "string") continue;
      const first = seen.get(name);
      if (first === undefined) {
        seen.set(name, index);
        continue;
      }
      addIssue({
        path: [
          { type: "array", origin: "value", input: dataset.value, key: index, value: rule },
          { type: "object", origin: "value", input: rule, key: "name", value: name },
        ],
        input: name,
        message: `a name of its own; this one is that of rules[${first}]`,
      });
    }
  }),
);

/** The one source of the configuration's types, defaults and messages. */
export const ConfigSchema = fields({
  rules: Rules,
  origin: v.optional(OriginSchema),
  store: v.optional(oneOf("upstash", "durable-object", "memory")),
  clock: v.optional(oneOf("redis", "edge"), "redis"),
  prefix: v.optional(
    parsed((text) => (/^[A-Za-z0-9._-]{1,64}$/.test(text) ? text : undefined), PREFIX),
    "weir",
  ),
  timeoutMs: v.optional(integer(1, 30_000), 1000),
  headers: v.optional(oneOf("draft-11", "legacy", "both", "none"), "draft-11"),
  ipv6Prefix: v.optional(integer(1, 128), 64),
  caseSensitivePaths: v.optional(v.boolean("true or false"), false),
});

/** What one writes in weir.config.ts. */
export type ConfigInput = v.InferInput<typeof ConfigSchema>;
/** What Weir works with: everything valid, every default filled in. */
export type Config = v.InferOutput<typeof ConfigSchema>;
