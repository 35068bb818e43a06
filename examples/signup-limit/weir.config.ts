import { defineConfig } from "edge-weir/config";

// At most 100 sign-ups an hour, counted over all clients. So a bot with many addresses cannot
// create more accounts. If the store cannot decide, the client gets 503, so an outage does not lift
// the limit.
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
