-- What the marts read of evaluations, without a row: where nothing was evaluated, they are empty.
CREATE TABLE IF NOT EXISTS experiments (
    experiment VARCHAR, question_set VARCHAR, started_at TIMESTAMPTZ, finished_at TIMESTAMPTZ
);
CREATE TABLE IF NOT EXISTS conditions (
    experiment VARCHAR, condition VARCHAR, position INTEGER, method VARCHAR, parameters VARCHAR,
    release VARCHAR
);
CREATE TABLE IF NOT EXISTS experiment_answers (
    experiment VARCHAR, condition VARCHAR, question_id VARCHAR, answer_id VARCHAR
);
CREATE TABLE IF NOT EXISTS answers (
    answer_id VARCHAR, model VARCHAR, citations INTEGER, citations_resolved INTEGER,
    context_tokens INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, model_calls INTEGER,
    cost DOUBLE, retrieve_ms DOUBLE, total_ms DOUBLE
);
-- Earlier versions of the program kept no parts.
ALTER TABLE answers
ADD COLUMN IF NOT EXISTS parts STRUCT(kind VARCHAR, records INTEGER, tokens INTEGER)[];
CREATE TABLE IF NOT EXISTS scores (
    answer_id VARCHAR, question_set VARCHAR, metric VARCHAR, value DOUBLE
);
CREATE TABLE IF NOT EXISTS comparisons (
    experiment VARCHAR, criterion VARCHAR, condition_a VARCHAR, condition_b VARCHAR,
    questions INTEGER, verdicts INTEGER, win_rate DOUBLE, win_rate_low DOUBLE, win_rate_high DOUBLE,
    ties DOUBLE, first_chosen DOUBLE, first_chosen_low DOUBLE, first_chosen_high DOUBLE,
    consistent DOUBLE, p DOUBLE, p_corrected DOUBLE, winner VARCHAR, verdict VARCHAR
);
CREATE TABLE IF NOT EXISTS metric_history (
    experiment VARCHAR, condition VARCHAR, metric VARCHAR, release VARCHAR, mean DOUBLE,
    measured_at TIMESTAMPTZ
);
