import { defineConfig } from "weir/config";

// At most 100 sign-ups an hour, whoever they come from: however many addresses a bot has, it makes
// no more accounts than that. Nobody signs up unlimited: when it cannot be decided, the answer is 503.
export default defineConfig({
  rules: [
    {
      name: "sign-up",
      match: { methods: ["POST"], paths: ["/sign-up"] },
      key: "global",
      limit: 100,
      window: "1h",
      onError: "closed",
    },
  ],
});
