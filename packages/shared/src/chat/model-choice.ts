/** The models that a session may choose. */
import { z } from 'zod'

/** A configured model by name, and one of its thought levels; absent: the deployment's default. */
export const modelChoice = {
  model: z.string().max(200).optional(),
  thoughtLevel: z.string().max(32).optional(),
}

/** A model that a session may choose. `images`: whether it accepts them. */
export const modelAbout = z.object({
  name: z.string(),
  thoughtLevels: z.array(z.string()),
  images: z.boolean(),
})
export type ModelAbout = z.infer<typeof modelAbout>
