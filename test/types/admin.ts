// `npm run types` compiles this file. The admin surface must fit into apps with types of their own.

import { rateLimit } from "edge-weir";
import { weirAdmin } from "edge-weir/admin";
import { Hono } from "hono";
import { defineConfig } from "../../src/config/index.ts";

interface AppTypes {
  Bindings: { ORIGIN: string };
  Variables: { user: string };
}

const config = defineConfig({ rules: [{ name: "login", limit: 5, window: "1m" }] });

const app = new Hono<AppTypes>();
app.route("/", weirAdmin(config));
app.use(rateLimit(config));

export { app };
