import { bytes, CLIENT, head, type Vector, type VectorClass } from "../vector.ts";

/** A request that the rule must count, although the client tries to escape it. */
function counted(rule: string, name: string, query = "", ...fields: string[]): Vector {
  return {
    name: `${rule}: ${name}`,
    lines: head(`/${rule}${query}`, ...fields),
    counted: { [rule]: "the client" },
  };
}

/** A request that the rule does not count, because the condition certainly does not apply. */
function notCounted(rule: string, name: string, query = "", ...fields: string[]): Vector {
  return { ...counted(rule, name, query, ...fields), counted: {} };
}

/** Requests with these queries, which the rule must count. */
function queries(rule: string, texts: readonly string[]): Vector[] {
  return texts.map((text) => counted(rule, text, `?${text}`));
}

/** Requests with one address each, which the rule counts for one client. */
function from(rule: string, addresses: readonly string[], isCounted = true): Vector[] {
  return addresses.map((address) => ({
    name: `${rule}: ${address || "no address"}`,
    lines: [
      `GET /${rule} HTTP/1.1`,
      "Host: api.example.com",
      ...(address === "" ? [] : [`CF-Connecting-IP: ${address}`]),
      "Connection: close",
    ],
    counted: isCounted ? { [rule]: "all clients" } : {},
  }));
}

export const conditions: VectorClass = {
  about: "conditions on header fields, query parameters and clients",
  vectors: [
    counted("if-header", "the field", "", "X-Plan: free"),
    counted("if-header", "white space", "", "X-Plan: \t free \t"),
    counted("if-header", "other case", "", "X-Plan: FREE"),
    counted("if-header", "quotes", "", 'X-Plan: "free"'),
    counted("if-header", "two fields", "", "X-Plan: free", "X-Plan: pro"),
    counted("if-header", "two fields in the other order", "", "X-Plan: pro", "X-Plan: free"),
    counted("if-header", "two other fields", "", "X-Plan: pro", "X-Plan: max"),
    counted("if-header", "a list", "", "X-Plan: pro,free"),
    counted("if-header", "an underscore", "", "X_Plan: free"),
    counted("if-header", "an underscore and another value", "", "X_Plan: pro"),
    counted("if-header", "both spellings", "", "X-Plan: pro", "X_Plan: free"),
    counted("if-header", "single quotes", "", "X-Plan: 'free'"),
    counted("if-header", "a character without a width", "", bytes("X-Plan: fr\u200bee")),
    notCounted("if-header", "no field"),
    notCounted("if-header", "another value", "", "X-Plan: pro"),
    notCounted("if-header", "another field", "", "X-Plans: free"),
    counted("if-prefix", "the scheme", "", "Authorization: Bearer sk-1"),
    ...[
      ...["bearer sk-1", "Bearer  sk-1", "BEARER SK-1", "Token sk-1", "sk-1", "Bearer a sk-1"],
      ...['Bearer "sk-1"', "Bearer pk-1, Bearer sk-1", "Bearer: sk-1", "Token token=sk-1"],
    ].map((value) => counted("if-prefix", value, "", `Authorization: ${value}`)),
    ...["Bearer x", "bearer x", "Token x", "x", "Basic eDp5", "Bearer", "Bearer x y"].map((value) =>
      counted("if-scheme", value, "", `Authorization: ${value}`),
    ),
    notCounted("if-scheme", "no field"),
    notCounted("if-prefix", "another key", "", "Authorization: Bearer pk-1"),
    ...queries("if-query", [
      ...["plan=free", "plan=%66ree", "plan=FREE", "plan=+free", "plan=free%00", "plan=%22free%22"],
      ...["plan=free&plan=pro", "plan=pro&plan=free", "plan=pro&Plan=free", "Plan=free"],
      ...["plan[]=free", "plan[0]=free", "[plan]=free", "plan=pro&plan[]=free", "plan[a]=free"],
      ...["%70lan=free", "%2570lan=free", "plan=%2566ree", "plan=%u0066ree", "plan%00=free"],
      ...["a=1;plan=free", "plan=free;a=1", "plan=pro;plan=free", "+plan=free", "plan%20=free"],
    ]),
    ...queries("if-query", [
      ...[
        "plan='free'",
        "plan=f%00ree",
        "plan=free%00x",
        "plan=%00free%00x",
        "plan=f%09ree",
        "plan=fr%E2%80%8Bee",
      ],
      ...["plan=%25u0066ree", "plan=%C1%A6ree", "plan=%EF%BD%86ree", "plan=free%FF"],
    ]),
    ...queries("if-sent", [
      ...["plan=x", "plan=", "plan", "%u0070lan=x", "%C1%B0lan=x", "%EF%BD%90lan=x", "%2570lan=x"],
      ...["%u0025u0070lan=x", "%C0%A5u0070lan=x", "plan%5Ba%5D=x", "plan%C1%9Ba%5D=x", "pl%61n=x"],
      ...["%E3%80%80plan=x", "plan%u005ba%u005d=x", "p%E0%81%ACan=x"],
    ]),
    notCounted("if-sent", "another parameter", "?%EF%BD%91lan=x&%u0071lan=x&plans=x&pla%6e%6e=x"),
    notCounted("if-query", "no parameter"),
    notCounted("if-query", "another value", "?plan=pro"),
    notCounted("if-query", "another parameter", "?plans=free"),
    counted("unless-header", "no field"),
    notCounted("unless-header", "the field", "", "X-Probe: up"),
    counted("unless-header", "other case", "", "X-Probe: UP"),
    counted("unless-header", "more text", "", "X-Probe: up2"),
    counted("unless-header", "an empty field", "", "X-Probe:"),
    counted("unless-header", "two fields", "", "X-Probe: up", "X-Probe: up"),
    counted("unless-header", "an underscore", "", "X_Probe: up"),
    counted("unless-header", "both spellings", "", "X-Probe: up", "X_Probe: down"),
    ...["up\xa0", "up\xff", "up\x85", "\xa0up", bytes("up\u200b"), bytes("\u00adup"), "'up'"].map(
      (value) => counted("unless-header", value, "", `X-Probe: ${value}`),
    ),
    ...["\xa0up", bytes("\u200bup"), bytes("u\u00adp"), "UP", '"up'].map((value) =>
      counted("unless-header-prefix", value, "", `X-Probe: ${value}`),
    ),
    notCounted("unless-header-prefix", "the prefix", "", "X-Probe: up and running"),
    notCounted("unless-any-header", "the field", "", "X-Probe: 1"),
    notCounted("unless-any-header", "two fields", "", "X-Probe: 1", "X-Probe: 2"),
    counted("unless-any-header", "an empty second field", "", "X-Probe: 1", "X-Probe:"),
    counted("unless-any-header", "an empty first field", "", "X-Probe:", "X-Probe: 1"),
    counted("unless-any-header", "an empty field with _", "", "X-Probe: 1", "X_Probe:"),
    counted("unless-any-header", "an empty text", "", 'X-Probe: ""'),
    notCounted("unless-query", "the parameter", "?probe=up"),
    notCounted("unless-query", "an escaped letter", "?probe=%75p"),
    ...queries(
      "unless-query",
      [
        ...[
          "up%20",
          "+up",
          "up%00",
          "up%0A",
          "%01up",
          "up%E2%80%8B",
          "up%C2%A0",
          "%C2%ADup",
          "up%FF",
        ],
        ...[
          "up%EF%BB%BF",
          "up%7F",
          "up%C2%85",
          "up%u0020",
          "up%u200B",
          "%u0075p",
          "%C1%B5p",
          "'up'",
        ],
      ].map((value) => `probe=${value}`),
    ),
    ...queries(
      "unless-prefix",
      [...["%20up", "+up", "%00up", "%E2%80%8Bup", "%u0075p", "u%00p", "UP", "%22up", "%zzup"]].map(
        (value) => `probe=${value}`,
      ),
    ),
    notCounted("unless-prefix", "the prefix", "?probe=up+and%20running"),
    notCounted("unless-any-query", "the parameter", "?dry_run=1"),
    notCounted("unless-any-query", "two parameters", "?dry_run=1&dry_run=2"),
    ...queries("unless-any-query", [
      ...["dry_run=&dry_run=1", "dry_run=1&dry_run=", "dry_run=1&dry_run", "dry_run=1&DRY_RUN="],
      ...["dry_run=1&dry_run[]=", "dry_run=1&dry.run=", "dry_run=1&%u0064ry_run=", "dry_run=%2520"],
      ...["dry_run=%00x", "dry_run=%22%22", "dry_run=%E2%80%8B", "dry_run=1&dry_run=%2500"],
    ]),
    notCounted("unless-no-query", "another parameter", "?a=1"),
    ...queries("unless-no-query", [
      ...["%u0066orce=1", "%EF%BD%86orce=1", "%C1%A6orce=1", "%2566orce=1", "force", "force=&a=1"],
      ...["%25u0066orce=1", "force%u005ba]=1"],
    ]),
    ...queries("unless-query", [
      ...["probe", "probe=", "probe=UP", "probe=up&probe=up", "probe=up&probe[]=down", "Probe=up"],
      ...["probe[]=up", "probe=up;a=1", "a=1;probe=up", "probe=%2575p", "probe=up&probe%00=down"],
    ]),
    notCounted("unless-sent", "no field"),
    counted("unless-sent", "the field", "", "X-Debug: 1"),
    counted("unless-sent", "an empty field", "", "X-Debug:"),
    counted("unless-sent", "an underscore", "", "X_Debug: 1"),
    ...from("if-ip", [CLIENT, `::ffff:${CLIENT}`, `64:ff9b::${CLIENT}`, "::ffff:cb00:7107"]),
    notCounted("if-other-ip", "a forged field", "", "X-Forwarded-For: 198.51.100.1"),
    ...from("unless-ip", ["2a06:98c0:3600::103", "", "198.51.100.1, 198.51.100.2", "::ffff:0:0"]),
    ...from("unless-ip", ["198.51.100.1", "::ffff:198.51.100.1"], false),
    {
      ...counted("unless-ip", "a forged field", "", "X-Forwarded-For: 198.51.100.1"),
      counted: { "unless-ip": "all clients" },
    },
    counted("unless-country", "a forged country", "", "CF-IPCountry: AQ"),
    counted(
      "unless-bot",
      "a forged bot",
      "",
      "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1)",
    ),
  ],
};
