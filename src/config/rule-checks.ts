import { faultText, listOfNames, shortened } from "./faults.ts";
import { checkOf, type Fields, isRecord, refuseGiven } from "./fields.ts";
import { type KeyPart, parseAlternatives } from "./key.ts";
import { reserveIn } from "./limit-fields.ts";
import { MAX_ROUTE, splitRoute } from "./match.ts";

// These checks compare fields of a rule with each other. They also run if the rule has other faults, so
// that Weir reports all faults at once. In such a rule, a field without a fault has its parsed value,
// and a field with a fault has the value that the user wrote.

/**
 * Checks that each `param:NAME` is a parameter of the rule's paths. Otherwise the value would always be
 * absent, and the rule would identify every client by its address.
 */
export function checkParams<Output>() {
  return checkOf<Output>(({ key, tiers, match = {}, for: audience }, refuse) => {
    const paths = isRecord(match) ? (match.paths ?? []) : undefined;
    // If the paths have a fault, the parameters are unknown.
    if (!Array.isArray(paths) || !paths.every(isShortText)) return;
    const names = paths.flatMap(splitRoute).flatMap((each) => /^:(\w+)/.exec(each)?.[1] ?? []);
    const check = (expression: unknown, ...path: string[]) => {
      for (const part of partsOf(expression)) {
        if (part.kind !== "param" || names.includes(part.name)) continue;
        const message = faultText(() => {
          const name = shortened(part.name);
          const present = names.length > 0 ? `only ${listOfNames(names)}` : "no parameters";
          return audience === "programs"
            ? `a rule for programs has no paths, so write custom:${name}`
            : `param:${name} is no parameter of match.paths, which has ${present}`;
        });
        refuse(message, ...path);
      }
    };
    check(key, "key");
    if (isRecord(tiers)) check(tiers.by, "tiers", "by");
  });
}

/**
 * Returns the parts of a key. A key without a fault is already parsed. A key with a fault is a text or
 * a list.
 */
export function partsOf(key: unknown): KeyPart[] {
  return [key].flat(2).flatMap((part) => {
    if (typeof part === "string") return parseAlternatives(part) ?? [];
    return isRecord(part) && typeof part.kind === "string" ? (part as unknown as KeyPart) : [];
  });
}

/**
 * Checks a rule with shards. Each shard's share of every limit must be at least 1, because a shard
 * with a limit of 0 would deny every request that is sent to it. The rule must have no ban.
 */
export function checkShards<Output>() {
  return checkOf<Output>((fields, refuse) => {
    const { shards, ban } = fields;
    if (typeof shards !== "number" || shards <= 1) return;
    if (ban !== undefined) {
      refuse(
        faultText("a rule with shards can have no ban, because shards do not share their bans"),
        "ban",
      );
    }
    const smallest = Math.min(...limitsOf(fields));
    if (shards <= smallest) return;
    refuse(
      faultText(
        () =>
          `shards can be at most the smallest limit, ${smallest}, because each shard has a part of it`,
      ),
      "shards",
    );
  });
}

/** Returns the limits of a rule and its tiers. Limits with faults are left out. */
function limitsOf(fields: Fields): number[] {
  const { tiers } = fields;
  const limits = isRecord(tiers) ? tiers.limits : undefined;
  const ofTiers: unknown[] = limits instanceof Map ? [...limits.values()] : [];
  return [fields, ...ofTiers]
    .filter(isRecord)
    .flatMap((each) => (Array.isArray(each.limits) ? each.limits : each))
    .flatMap((each) => (isRecord(each) && Number.isInteger(each.limit) ? Number(each.limit) : []))
    .filter((limit) => limit >= 0);
}

/**
 * For a rule whose cost has `settle` and whose `count` has statuses, checks that either both or none
 * of them charge before the response. Otherwise the rule would not show when it charges.
 */
export function checkCount<Output>() {
  return checkOf<Output>(({ cost, count }, refuse) => {
    if (!isRecord(cost) || !isRecord(count) || !Array.isArray(count.statuses)) return;
    if (!isRecord(cost.settle)) return;
    if (cost.before === undefined && count.reserve === true) {
      refuse(
        faultText(
          "remove reserve: only the response determines the cost. To charge an estimate before, write cost: { reserve, settle }",
        ),
        "count",
      );
    } else if (cost.before !== undefined && count.reserve === false) {
      refuse(
        faultText("add reserve: true, because cost.reserve is charged before the status is known"),
        "count",
      );
    }
  });
}

/**
 * Checks that `localShare` is set only together with `onError: "local"`, because otherwise it has
 * no effect.
 */
export function checkLocalShare<Output>() {
  return checkOf<Output>(({ localShare, onError }, refuse) => {
    const isOther = onError === undefined || onError === "open" || onError === "closed";
    if (localShare === undefined || !isOther) return;
    refuse(
      faultText('localShare needs onError: "local". Add it, or remove localShare'),
      "localShare",
    );
  });
}

/**
 * Checks that every set field has an effect in the rule's mode. For example, a rule that never
 * denies needs no response for denials.
 */
export function checkMode<Output>() {
  return checkOf<Output>(({ mode, tellOrigin, ...fields }, refuse) => {
    if (mode === "shadow" && tellOrigin === true) {
      refuse(
        faultText(
          'remove tellOrigin: a rule with mode: "shadow" must not change how a request is answered',
        ),
        "tellOrigin",
      );
    }
    if (mode !== "mark") return;
    const because = faultText('a rule with mode: "mark" never denies a request');
    refuseGiven(fields, ["ban", "retryJitter", "response"], because, refuse);
    if (fields.onError !== "closed" && fields.onError !== "local") return;
    const undecided = faultText(
      () => `${because}, and a request that the store cannot decide passes without a mark`,
    );
    refuseGiven(fields, ["onError"], undecided, refuse);
    refuseGiven(fields, ["localShare"], because, refuse);
  });
}

/**
 * Checks that a rule for programs has no field that only HTTP requests use, because the field would
 * have no effect.
 */
export function checkPrograms<Output>() {
  return checkOf<Output>((fields, refuse) => {
    if (fields.for !== "programs") return;
    const { match, cost } = fields;
    const because = faultText('a rule with for: "programs" counts no HTTP request');
    const isEmpty = isRecord(match) && Object.keys(match).length === 0;
    if (!isEmpty) refuseGiven(fields, ["match"], because, refuse);
    refuseGiven(fields, ["exempt", "response", "retryJitter"], because, refuse);
    if (fields.tellOrigin === true) refuseGiven(fields, ["tellOrigin"], because, refuse);
    if (isRecord(cost) && typeof reserveIn(cost) !== "number") {
      refuse(
        faultText(() => `write a whole number, or { reserve: 1200 }: ${because}`),
        "cost",
      );
    } else if (isRecord(cost)) {
      const own = faultText("a program states its costs itself");
      refuseGiven(cost, ["max", "default"], own, (message, name = "") =>
        refuse(message, "cost", name),
      );
    }
    refuseGiven(fields, ["count"], because, refuse);
  });
}

/** Whether a path is short enough to be split. A longer path is a fault. */
function isShortText(path: unknown): path is string {
  return typeof path === "string" && path.length <= MAX_ROUTE;
}
