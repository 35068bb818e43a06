/**
 * A text for which editors suggest the given examples.
 *
 * The compiler accepts every text, because a text in a variable has the type `string`.
 * `defineConfig` reports an invalid text at run time. Without the intersection, the compiler would
 * reduce the union to `string`, and editors would suggest nothing.
 */
export type TextLike<Example extends string> = Example | (string & Record<never, never>);
