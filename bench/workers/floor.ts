import { Hono } from "hono/tiny";
import { forward } from "./forward.ts";

/** The floor: a Hono Worker that forwards and limits nothing. */
const app = new Hono();
app.all("*", ({ req }) => forward(req.raw));

export default app;
