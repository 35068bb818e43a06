import { defineConfig } from "weir/config";

// 10 exports an hour. What is not used is kept for later, up to 30: after a quiet morning, and when
// it is new, a client can have three hours' worth at once.
export default defineConfig({
  rules: [
    {
      name: "exports",
      match: { methods: ["POST"], paths: ["/exports"] },
      // Where the origin answers unknown keys too, put a rule with key: "ip" beside this one.
      key: "header:x-api-key | ip",
      limit: 10,
      window: "1h",
      capacity: 30,
    },
  ],
});
