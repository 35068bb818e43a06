import type { ConditionsInput } from "../../src/config/conditions.ts";
import type { MatchInput } from "../../src/config/match.ts";

const HIDDEN = "…";

/** Returns conditions with "…" in place of the values of header fields and query parameters. */
export function withoutValues({ except, ...conditions }: MatchInput): MatchInput {
  return { ...hidden(conditions), ...(except && { except: hidden(except) }) };
}

function hidden({ headers, query, ...others }: ConditionsInput): ConditionsInput {
  return {
    ...others,
    ...(headers && { headers: hiddenIn(headers) }),
    ...(query && { query: hiddenIn(query) }),
  };
}

type Values = NonNullable<ConditionsInput["headers"]>;

function hiddenIn(values: Values): Values {
  const entries = Object.entries(values).map(
    ([name, value]) => [name, typeof value === "boolean" ? value : HIDDEN] as const,
  );
  return Object.fromEntries(entries);
}

/** Whether {@link withoutValues} has hidden a value. */
export function hasHiddenValue({ except, headers, query }: MatchInput): boolean {
  const maps = [headers, query, except?.headers, except?.query];
  return maps.some((values) => Object.values(values ?? {}).includes(HIDDEN));
}
