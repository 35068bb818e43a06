import type { StartFields } from "./calendar.ts";
import type { KeyInput } from "./key.ts";
import type { ChargeFields, OutcomeFields } from "./limit-fields.ts";
import type { MatchInput } from "./match.ts";
import type { ExemptInput, TiersInput } from "./tiers.ts";
import type { LimitFields } from "./window.ts";

/**
 * A rule: which requests it counts, which value identifies a client, and how many requests pass.
 *
 * @typeParam Name the name of the rule, as a literal type
 * @example { name: "login", match: { paths: ["/login"] }, key: "ip", limit: 5, window: "1m" }
 */
export interface RuleInput<Name extends string = string>
  extends LimitFields,
    StartFields,
    ChargeFields,
    OutcomeFields {
  /**
   * The name of the rule, unique in the configuration: 1 to 64 characters of `a-z 0-9 - _`,
   * beginning with a letter or digit. Clients see it in the RateLimit fields. It is part of the
   * stored keys, so a renamed rule begins with empty counters.
   */
  readonly name: Name;
  /**
   * `"all"`: the rule counts HTTP requests, and calls of programs through `WeirService`.
   * `"programs"`: the rule counts only calls of programs. The key of such a rule may be `custom:NAME`
   * without a function. Fields that apply only to HTTP requests, such as `match` and `exempt`, are
   * faults in such a rule.
   *
   * @default "all"
   */
  readonly for?: "all" | "programs" | undefined;
  /**
   * Which requests the rule counts.
   *
   * @default every request
   * @example { methods: ["POST"], paths: ["/login"] }
   */
  readonly match?: MatchInput | undefined;
  /**
   * Which value tells clients apart:
   *
   * - `"ip"`: the client's address; for IPv6, its network of `ipv6Prefix` bits
   * - `"header:NAME"`, `"cookie:NAME"`, `"query:NAME"`: that header field, cookie or query parameter
   * - `"param:NAME"`: the part of the path that matches `:NAME` in `match.paths`
   * - `"host"`, `"path"`, `"method"`: the host, path or method of the request
   * - `"country"`, `"asn"`: the client's country or network operator, as Cloudflare reports it
   * - `"ja4"`: the fingerprint of the client's TLS handshake; needs Cloudflare's Bot Management
   * - `"global"`: one counter for all clients
   * - `"jwt:CLAIM"`: a claim of the client's verified token; needs the top-level field `jwt`. A
   *   nested claim is a JSON Pointer, such as `"jwt:/app_metadata/plan"`
   * - `"custom:NAME"`: the result of your function `custom.keys.NAME`, a top-level field
   * - `"a | b"`: the first of these values that the request has
   * - a list: all of its elements combined
   *
   * If the request has none of the values, Weir uses the client's address instead. Clients can
   * choose some values freely, such as a header that nobody checks. For such a key, add a second
   * rule with `key: "ip"`.
   *
   * @default "ip"
   * @example "header:x-api-key | ip"
   * @example ["header:x-api-key", "path"]
   */
  readonly key?: KeyInput | readonly KeyInput[] | undefined;
  /**
   * The number of counters (shards) that share the quota of one busy key: a whole number from 1 to
   * 100, and not higher than the rule's smallest limit. Near the limit, a request may be denied
   * although another shard has quota left. A number above 1 cannot be set together with `ban`.
   *
   * @default 1
   */
  readonly shards?: number | undefined;
  /**
   * Different limits for some clients.
   *
   * @default none
   * @example { by: "jwt:plan", limits: { pro: { limit: 5000, window: "1m" } } }
   */
  readonly tiers?: TiersInput | undefined;
  /**
   * Which requests the rule does not count. At least one of `ips` and `headers` is required. Other
   * rules still count these requests.
   *
   * @default none
   * @example { ips: ["198.51.100.0/24"] }
   */
  readonly exempt?: ExemptInput | undefined;
  /**
   * `"auto"`: a busy isolate takes quota in blocks and decides without a call to the store. `false`: every
   * admitted request takes a call to the store.
   *
   * @default "auto"
   */
  readonly lease?: "auto" | false | undefined;
}
