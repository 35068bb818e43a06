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
      // This rule counts every request, also the logins. In shadow mode it denies none: the dashboard and the log
      // show whom it would have denied. Remove the mode when the limit fits. While the store fails, requests pass
      // this rule: the default of onError is "open".
      name: "all",
      key: "ip",
      limit: 300,
      window: "1m",
      mode: "shadow",
    },
  ],
});
