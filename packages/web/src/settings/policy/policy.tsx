/** Approval rules for everybody: those that are made here, and those of the configuration. */
import { describeMatch } from '@sandlot/shared/chat/rules'
import { useResource } from '../../state/use-resource.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { NewRuleForm } from '../new-rule-form.tsx'
import { Part } from '../part.tsx'
import { EFFECT, RuleLine } from '../rules.tsx'

export function PolicySection() {
  const {
    data: view,
    problem,
    busy,
    reload,
    change,
  } = useResource('rules', (signal) => call('listEverybodysRules', { signal }))
  if (view === null) return problem === null ? null : <Alert>{problem}</Alert>
  return (
    <>
      <Part
        title="Rules set here"
        text="They apply from the next call, in every mode, to people, guests and API keys. Personal rules can’t override a deny or ask."
      >
        {problem !== null && <Alert>{problem}</Alert>}
        {view.rules.length === 0 ? (
          <p className="text-sm text-muted">None yet.</p>
        ) : (
          <ul aria-label="Rules for everybody" className="divide-y divide-line rounded-lg border border-line">
            {view.rules.map((rule) => (
              <RuleLine key={rule.id} rule={rule}>
                <Button
                  size="sm"
                  variant="danger"
                  disabled={busy}
                  aria-label={`Revoke ${EFFECT[rule.effect].word} ${describeMatch(rule.match)}`}
                  onClick={() => void change(() => call('revokeEverybodysRule', { params: { id: rule.id } }))}
                >
                  Revoke
                </Button>
              </RuleLine>
            ))}
          </ul>
        )}
        <NewRuleForm mayAllow first="deny" action="addEverybodysRule" onAdded={() => void reload()} />
      </Part>
      {view.configured.length > 0 && (
        <Part
          title="From the configuration"
          text="Set under rules in the configuration file. Changes there apply after a restart."
        >
          <ul aria-label="Configured rules" className="divide-y divide-line rounded-lg border border-line">
            {view.configured.map((rule) => (
              <RuleLine key={rule.id} rule={rule} />
            ))}
          </ul>
        </Part>
      )}
    </>
  )
}
