import { defineConfig } from "weir/config";

// 10 exports an hour. What is not used is kept for later, up to 30: after a quiet morning, and when
// it is new, a client can have three hours' worth at once.
export default defineConfig({
  rules: [
    {
      name: "exports",
      match: { methods: ["POST"], paths: ["/exports"] },
      key: "header:x-api-key | ip",
      limit: 10,
      window: "1h",
      capacity: 30,
    },
    {
      // A key can be made up, and each is a client of its own: this bounds them all together, with
      // quota for ten clients behind one address.
      name: "exports-address",
      match: { methods: ["POST"], paths: ["/exports"] },
      key: "ip",
      limit: 100,
      window: "1h",
      capacity: 300,
    },
  ],
});
