/** What a session may choose to be answered by. */
import { z } from 'zod'

/**
 * One of the deployment's, by name, and one of its thought levels; absent: the deployment's own, as
 * it does by itself.
 */
export const modelChoice = {
  model: z.string().max(200).optional(),
  thoughtLevel: z.string().max(32).optional(),
}

/** A model that a session may choose. `images`: whether it takes them. */
export const modelAbout = z.object({
  name: z.string(),
  thoughtLevels: z.array(z.string()),
  images: z.boolean(),
})
export type ModelAbout = z.infer<typeof modelAbout>
