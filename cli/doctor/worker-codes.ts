import type { Code } from "./code.ts";

/** The findings of a run with `--at`. Such a run may also have the findings about time. */
export const WORKER_CODES = {
  "worker-ok": { severity: "ok" },
  "worker-url-invalid": {
    severity: "fault",
    advice:
      "Set --at to a URL of the deployed Worker, such as https://api.example.com, without a user and a password",
  },
  "worker-url-not-https": {
    severity: "fault",
    advice:
      "Use the https URL of the Worker, because http sends the token without encryption. The token was not sent",
  },
  "worker-unreachable": {
    severity: "fault",
    advice:
      "Compare the host name of --at with the routes and domains of the Worker, and check that the Worker is deployed, that its name has a DNS record, and that this machine has a network",
  },
  "worker-no-answer": {
    severity: "fault",
    advice:
      "Run the command again. If the Worker still does not answer, run npx wrangler tail, with --env NAME if the URL belongs to an environment, to read its log while the command runs",
  },
  "worker-no-doctor": {
    severity: "fault",
    advice:
      "Run npx wrangler secret put WEIR_ADMIN_TOKEN, with --env NAME if the URL belongs to an environment. Its value needs at least 32 characters. Set the environment variable WEIR_ADMIN_TOKEN of this command to the same text, and check that the URL leads to this Worker",
  },
  "worker-busy": { severity: "fault", advice: "Wait ten seconds, and run the command again" },
  "worker-binding": {
    severity: "fault",
    advice:
      "Set the binding, the var or the secret that the text names, in the environment that this Worker was deployed to",
  },
  "worker-mode": {
    severity: "warning",
    advice:
      "Remove the var WEIR_MODE from the environment that this Worker was deployed to, unless it must not deny requests",
  },
  "worker-store-failed": {
    severity: "fault",
    advice: "Run weir doctor without --at, with the same database, to find the reason",
  },
} as const satisfies Record<string, Code>;
