//! `compiled`: hands the step to logic that is compiled into Fairway.

use serde_json::json;

use super::StepContext;
use super::help::Ended;
use crate::model::migration::CompiledStep;
use crate::runs::compiled;
use crate::runs::effects::Effects;

pub(super) async fn attempt<E: Effects>(
    context: &StepContext<'_, E>,
    step: &CompiledStep,
) -> Ended {
    let with = context.render(&json!(step.with))?;
    Ok(compiled::attempt(&step.name, context, &with).await)
}
