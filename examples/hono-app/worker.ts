import { Hono } from "hono";
import { rateLimit } from "weir";
import config from "./weir.config.ts";

export { CounterObject } from "weir";

const app = new Hono();

// The app decides where each rule applies. With `app.use(rateLimit(config))`, each rule's match would.
app.use("/api/*", rateLimit(config, { rule: "api" }));
app.get("/api/items", (c) => c.json(["a weir", "a mill"]));

app.post("/sign-up", rateLimit(config, { rule: "sign-up" }), (c) => c.text("Welcome", 201));

export default app;
