/** Nodes that a volume can be used on. */
import type { KubernetesObject } from './objects.ts'

interface Requirement {
  key: string
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt'
  values?: string[]
}

export interface PersistentVolume extends KubernetesObject {
  spec: {
    nodeAffinity?: {
      required?: { nodeSelectorTerms: { matchExpressions?: Requirement[]; matchFields?: Requirement[] }[] }
    }
  }
}

/** Evaluates the node affinity of a volume as the scheduler does. */
export function canBeOn({ spec }: PersistentVolume, { metadata }: KubernetesObject): boolean {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms
  if (terms === undefined) return true
  const { name, labels = {} } = metadata
  return terms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false
    const isMet = (facts: Record<string, string>) => (one: Requirement) => meets(facts[one.key], one)
    return matchExpressions.every(isMet(labels)) && matchFields.every(isMet({ 'metadata.name': name }))
  })
}

function meets(value: string | undefined, { operator, values = [] }: Requirement): boolean {
  if (operator === 'DoesNotExist') return value === undefined
  if (operator === 'NotIn') return value === undefined || !values.includes(value)
  if (value === undefined) return false
  if (operator === 'In') return values.includes(value)
  if (operator === 'Gt') return Number(value) > Number(values[0])
  if (operator === 'Lt') return Number(value) < Number(values[0])
  return true
}
