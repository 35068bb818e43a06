import * as v from "valibot";
import type { Cost } from "./charge.ts";
import { pathTo } from "./fields.ts";
import type { KeyExpression } from "./key-expression.ts";
import type { ParsedLimitFields } from "./limits.ts";
import { type Match, splitRoute } from "./match.ts";

/** The parsed fields of a rule that depend on one another. */
interface CheckedFields extends ParsedLimitFields {
  readonly for: "all" | "programs";
  readonly match: Match;
  readonly key: KeyExpression;
  readonly tiers?: ParsedTiers | undefined;
  readonly shards: number;
  readonly cost: Cost;
  readonly count: readonly number[] | undefined;
  readonly exempt?: unknown;
  readonly response?: unknown;
  readonly retryJitter?: number | undefined;
  readonly ban?: number | undefined;
  readonly onError: "open" | "closed" | "local";
  readonly localShare?: number | undefined;
}

interface ParsedTiers {
  readonly by: KeyExpression;
  readonly limits: ReadonlyMap<string, ParsedLimitFields>;
}

type IssuePath = [v.ObjectPathItem, ...v.ObjectPathItem[]];

/**
 * Checks that each `param:NAME` is a parameter of the rule's paths. Otherwise the value would always be
 * absent, and the rule would identify every client by its address.
 */
export function checkParams<Fields extends CheckedFields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { key, tiers, match, for: audience } = dataset.value;
    const segments = (match.paths ?? []).flatMap(splitRoute);
    const check = (expression: KeyExpression, path: IssuePath) => {
      for (const part of expression.flat()) {
        if (part.kind !== "param") continue;
        const named = new RegExp(`^:${part.name}(?!\\w)`);
        if (segments.some((segment) => named.test(segment))) continue;
        const names = segments.flatMap((segment) => /^:(\w+)/.exec(segment)?.[1] ?? []);
        const message =
          audience === "programs"
            ? `custom:${part.name}, because a rule for programs has no paths`
            : `a parameter of match.paths, which has ${names.join(", ") || "none"}`;
        addIssue({ path, input: `param:${part.name}`, message });
      }
    };
    check(key, [pathTo(dataset.value, "key")]);
    if (tiers) check(tiers.by, [pathTo(dataset.value, "tiers"), pathTo(tiers, "by")]);
  });
}

/**
 * Checks a rule with shards. Each shard's share of every limit must be at least 1, because a shard
 * with a limit of 0 would deny every request that is sent to it. The rule must have no ban.
 */
export function checkShards<Fields extends CheckedFields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    if (!dataset.typed || dataset.value.shards === 1) return;
    const { shards, tiers, ban } = dataset.value;
    const refuse = (field: string, input: unknown, message: string) =>
      addIssue({ path: [pathTo(dataset.value, field)], input, message });
    if (ban !== undefined) {
      refuse("ban", ban, "no ban together with shards, because shards do not share their bans");
    }
    const limited: ParsedLimitFields[] = [dataset.value, ...(tiers?.limits.values() ?? [])];
    const smallest = Math.min(
      ...limited.flatMap(({ limit, limits }) => limits?.map((each) => each.limit) ?? limit ?? []),
    );
    if (shards <= smallest) return;
    const message = `no more than the smallest limit, which is ${smallest}, because each shard has a part of it`;
    refuse("shards", shards, message);
  });
}

/**
 * Checks that `localShare` is set only together with `onError: "local"`, because otherwise it has
 * no effect.
 */
export function checkLocalShare<Fields extends CheckedFields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { localShare, onError } = dataset.value;
    if (localShare === undefined || onError === "local") return;
    const path: IssuePath = [pathTo(dataset.value, "localShare")];
    addIssue({ path, input: localShare, message: 'only together with onError: "local"' });
  });
}

/**
 * Checks that a rule for programs has no field that only HTTP requests use, because the field would
 * have no effect.
 */
export function checkPrograms<Fields extends CheckedFields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    if (!dataset.typed || dataset.value.for !== "programs") return;
    const { match, exempt, cost, count, response, retryJitter } = dataset.value;
    const refuse = (field: string, input: unknown, message: string) =>
      addIssue({ path: [pathTo(dataset.value, field)], input, message });
    const noEffect = (field: string) =>
      `no ${field} in a rule with for: "programs", because such a rule counts no HTTP request`;
    if (Object.keys(match).length > 0) refuse("match", match, noEffect("match"));
    if (exempt !== undefined) refuse("exempt", exempt, noEffect("exempt"));
    if (response !== undefined) refuse("response", response, noEffect("response"));
    if (retryJitter !== undefined) refuse("retryJitter", retryJitter, noEffect("retryJitter"));
    const noResponse = 'in a rule with for: "programs", because a call has no response';
    if (typeof cost === "object") {
      refuse("cost", `header:${cost.header}`, `a whole number ${noResponse}`);
    }
    if (count !== undefined) refuse("count", { status: count }, `"request" ${noResponse}`);
  });
}
