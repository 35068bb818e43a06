import { bareName, nearestName } from "./nearest-name.ts";

/**
 * Words of other limiters for the values of a field, in lower case and without separators. The key
 * is the value as Weir writes it.
 */
const SYNONYMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  onError: {
    '"open"': "failopen allow allowed pass true ignore continue next fallthrough skip",
    '"closed"': "failclosed failclose deny denied block reject error throw 503 false",
    '"local"': "fallback memory inmemory isolate locally",
  },
  mode: {
    '"shadow"':
      "dryrun log logonly logging report reportonly monitor monitoring test testing simulate simulation audit off observe false disabled",
    '"mark"': "soft softlimit warn warning flag tag annotate label overage marked pass notify",
    '"enforce"': "on live block active enabled true deny production enforced",
  },
  store: {
    '"upstash"': "redis upstashredis rediscloud ioredis upstashratelimit",
    '"durable-object"':
      "do durableobject durableobjects kv d1 cloudflare sqlite counters workerskv cloudflarekv",
    '"memory"': "inmemory ram map local lru cache",
  },
  clock: {
    '"edge"': "local worker isolate cloudflare date now client",
    '"redis"': "store server upstash durableobject remote",
  },
  headers: {
    '"draft-11"':
      "true ietf standard draft draft6 draft7 draft8 draft9 draft10 draft12 rfc ratelimit on default",
    '"legacy"': "xratelimit github x old xratelimitlimit",
    '"both"': "all",
    '"none"': "false off no never null",
  },
  lease: { '"auto"': "true on yes always", false: "off never no none null 0 disabled" },
  caseSensitivePaths: { true: "yes 1 on true", false: "no 0 off false" },
  denialLog: { 0: "false off none no never null disabled", 10: "true on yes default" },
  serverTiming: { true: "yes 1 on true", false: "no 0 off false" },
  tellOrigin: { true: "yes 1 on true", false: "no 0 off false" },
  for: {
    '"all"': "http requests everything both web any",
    '"programs"': "service services code calls worker workers rpc",
  },
  start: {
    '"epoch"': "midnight utc now aligned fixed calendar",
    '"spread"': "random jitter hash staggered client",
  },
};

/**
 * Suggests one of the words that a field allows.
 *
 * @param allowed the words that the schema allows, if it lists them
 */
export function wordHint(
  field: string,
  given: unknown,
  allowed: readonly string[],
): string | undefined {
  if (typeof given === "object" && given !== null) return undefined;
  const word = bareName(String(given));
  for (const [meant, synonyms] of Object.entries(SYNONYMS[field] ?? {})) {
    if (synonyms.split(" ").includes(word)) return `write ${meant}`;
  }
  const same = allowed.find((each) => bareName(each) === word);
  if (same) return `write ${JSON.stringify(same)}`;
  const nearest = typeof given === "string" ? nearestName(given, allowed) : undefined;
  return nearest && `did you mean ${JSON.stringify(nearest)}?`;
}
