import type { Explanation } from "../src/explain/explanation.ts";

/** An explanation in which no rule applies. */
export const FAKE_EXPLANATION: Explanation = {
  outcome: "unmatched",
  request: {
    method: "GET",
    sentMethod: "GET",
    isPreflight: false,
    host: "api.example.com",
    path: "/",
    variants: ["/"],
    isUnambiguous: true,
    client: "203.0.113.7",
  },
  rules: [],
  response: { headers: [] },
};
