import { type CustomContext, defineConfig, type QuotaEvent } from "edge-weir/config";

export default defineConfig({
  rules: [
    { name: "plan", key: "header:x-api-key", limit: 10_000, window: "month", notify: [0.8, 1] },
    // Made-up keys have counters of their own. This rule bounds them.
    { name: "address", key: "ip", limit: 600, window: "1m" },
  ],
  custom: {
    events: (event, { env }: CustomContext<{ EVENTS: Queue<QuotaEvent> }>) =>
      env.EVENTS.send(event),
  },
});
