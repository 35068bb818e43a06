import { defineConfig } from "edge-weir/config";

export default defineConfig({
  rules: [
    {
      // At most five logins of each address in any minute, whenever it begins. While the store fails,
      // logins get 503, because unlimited logins would let attackers guess passwords.
      name: "login",
      match: { methods: ["POST"], paths: ["/login"] },
      key: "ip",
      limit: 5,
      window: "1m",
      sliding: true,
      onError: "closed",
    },
    {
      // This rule counts every request, also the logins. A request passes only if all rules that match
      // it allow it. While the store fails, requests pass this rule: the default of onError is "open".
      name: "all",
      key: "ip",
      limit: 300,
      window: "1m",
    },
  ],
});
