import type { Explanation } from "../../../../src/explain/explanation.ts";

/**
 * Returns a made-up explanation: one rule denies the request, one rule is in shadow mode, and one does not apply.
 *
 * @param now in milliseconds since the Unix epoch
 */
export function fakeExplanation(now: number): Explanation {
  const start = now - (now % 60_000);
  return {
    outcome: "limited",
    request: {
      method: "POST",
      sentMethod: "POST",
      isPreflight: false,
      host: "api.example.com",
      path: "/login",
      variants: ["/login", "/login%2f"],
      isUnambiguous: false,
      client: "203.0.113.7",
    },
    rules: [
      {
        rule: "login",
        applies: true,
        why: "It matches.",
        mode: "enforce",
        conditions: [
          { field: "match.paths", result: "holds", actual: "/login", expected: "/login" },
          {
            field: "match.query.export",
            result: "unknown",
            actual: '""',
            expected: "present",
            note: "Some servers take an empty value for an absent one. So the rule counts the request.",
          },
        ],
        key: [
          {
            alternatives: [
              { part: "header:x-api-key", result: "absent", from: "the header is missing" },
              {
                part: "ip",
                result: "used",
                from: "the header cf-connecting-ip",
                value: "203.0.113.7",
              },
            ],
            isFallback: false,
          },
        ],
        client: "A".repeat(22),
        tier: "pro",
        cost: 2,
        costSource: "cost: 2",
        exceeds: true,
        quotas: [],
        counters: [
          {
            policy: "login",
            shard: 1,
            limit: 5,
            capacity: 8,
            count: 7,
            cost: 2,
            windowStart: start,
            windowEnd: start + 60_000,
            storedKey: `weir:login:1m:${"A".repeat(22)}:29923362`,
            countAfter: 9,
            expiresAt: start + 61_000,
          },
        ],
        waitMs: 2000,
        async: true,
        banMs: 0,
        newBan: { storedKey: "weir:login:1m:AAAA:ban", until: now + 300_000, isAtLeast: true },
        override: {
          rule: "login",
          effect: { factor: 2 },
          reason: "sale",
          by: "token",
          setAt: now,
          expiresAt: now + 3_600_000,
        },
      },
      {
        rule: "search",
        applies: false,
        why: "The request does not fulfil match.methods: it has POST, and the rule demands GET.",
        mode: "shadow",
        conditions: [{ field: "match.methods", result: "fails", actual: "POST", expected: "GET" }],
        key: [],
      },
    ],
    response: {
      status: 429,
      headers: [
        ["content-type", "application/problem+json"],
        ["retry-after", "300"],
      ],
      body: '{"status":429}',
      originHeaders: [["weir-over", "login"]],
    },
  };
}
