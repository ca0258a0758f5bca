CREATE TABLE IF NOT EXISTS meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);

CREATE TABLE IF NOT EXISTS questions (
    question_set VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    question VARCHAR NOT NULL,
    answers VARCHAR[] NOT NULL,
    passages STRUCT(title VARCHAR, "text" VARCHAR)[] NOT NULL,
    type VARCHAR NOT NULL,
    persona VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    PRIMARY KEY (question_set, question_id)
);
ALTER TABLE questions ADD COLUMN IF NOT EXISTS document VARCHAR DEFAULT '';
COMMENT ON TABLE questions IS 'Questions, with what is known to be right about them.';
COMMENT ON COLUMN questions.question_set IS 'Name of the set: that of its file, or of what generated it.';
COMMENT ON COLUMN questions.question_id IS 'Hash of the question''s text, and of the document it is about, if it names one.';
COMMENT ON COLUMN questions.position IS 'Place within the set, from 0.';
COMMENT ON COLUMN questions.question IS 'The question.';
COMMENT ON COLUMN questions.answers IS 'Gold answers, any of which is right: aliases count. Empty where none is known.';
COMMENT ON COLUMN questions.passages IS 'Gold passages: document title, text, or both. Empty where none is known.';
COMMENT ON COLUMN questions.type IS 'Kind of question, as its source calls it; empty if it does not.';
COMMENT ON COLUMN questions.persona IS 'Who would ask it, for generated questions; else empty.';
COMMENT ON COLUMN questions.task IS 'For what task, for generated questions; else empty.';
COMMENT ON COLUMN questions.document IS 'The document it is about, as its file names it; empty where it is about none in particular.';

CREATE TABLE IF NOT EXISTS question_assertions (
    question_set VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    statement VARCHAR NOT NULL,
    sources VARCHAR[] NOT NULL,
    PRIMARY KEY (question_set, question_id, position)
);
COMMENT ON TABLE question_assertions IS 'What a complete answer to a question must say, where its set says it.';
COMMENT ON COLUMN question_assertions.question_set IS 'The set of questions.';
COMMENT ON COLUMN question_assertions.question_id IS 'The question.';
COMMENT ON COLUMN question_assertions.position IS 'Place among the question''s assertions, from 0, the most important first.';
COMMENT ON COLUMN question_assertions.statement IS 'The statement.';
COMMENT ON COLUMN question_assertions.sources IS 'Sentences of documents that it comes from; empty where they are not known.';

CREATE TABLE IF NOT EXISTS experiments (
    experiment VARCHAR PRIMARY KEY,
    question_set VARCHAR NOT NULL,
    spec VARCHAR NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ
);
COMMENT ON TABLE experiments IS 'Experiments: conditions over a set of questions.';
COMMENT ON COLUMN experiments.experiment IS 'Its name.';
COMMENT ON COLUMN experiments.question_set IS 'The questions it asks.';
COMMENT ON COLUMN experiments.spec IS 'The experiment as read, as JSON.';
COMMENT ON COLUMN experiments.started_at IS 'When it was last started.';
COMMENT ON COLUMN experiments.finished_at IS 'When all of it was done; empty until then.';

CREATE TABLE IF NOT EXISTS conditions (
    experiment VARCHAR NOT NULL,
    condition VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    method VARCHAR NOT NULL,
    parameters VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    PRIMARY KEY (experiment, condition)
);
COMMENT ON TABLE conditions IS 'What an experiment compares: a method with parameters on a release.';
COMMENT ON COLUMN conditions.experiment IS 'The experiment.';
COMMENT ON COLUMN conditions.condition IS 'Name of the condition, such as C0 or SS.';
COMMENT ON COLUMN conditions.position IS 'Place within the experiment, from 0.';
COMMENT ON COLUMN conditions.method IS 'Retrieval method.';
COMMENT ON COLUMN conditions.parameters IS 'All its parameters, as JSON.';
COMMENT ON COLUMN conditions.release IS 'Release that was asked; empty where each document has an index of its own: answers say which.';

CREATE TABLE IF NOT EXISTS unanswered (
    experiment VARCHAR NOT NULL,
    condition VARCHAR NOT NULL,
    questions INTEGER NOT NULL,
    reason VARCHAR NOT NULL,
    PRIMARY KEY (experiment, condition)
);
COMMENT ON TABLE unanswered IS 'Conditions that could not answer when their experiment was last run, or not all questions.';
COMMENT ON COLUMN unanswered.experiment IS 'The experiment.';
COMMENT ON COLUMN unanswered.condition IS 'Name of the condition.';
COMMENT ON COLUMN unanswered.questions IS 'How many of its questions have no answer for this reason or another.';
COMMENT ON COLUMN unanswered.reason IS 'Why: the first reason, of several.';

CREATE TABLE IF NOT EXISTS answers (
    answer_id VARCHAR PRIMARY KEY,
    question VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    parameters VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    context VARCHAR NOT NULL,
    chunk_ids VARCHAR[] NOT NULL,
    citations INTEGER NOT NULL,
    citations_resolved INTEGER NOT NULL,
    context_tokens INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    cost DOUBLE,
    retrieve_ms DOUBLE NOT NULL,
    total_ms DOUBLE NOT NULL,
    failures VARCHAR[] NOT NULL,
    answered_at TIMESTAMPTZ NOT NULL
);
ALTER TABLE answers ADD COLUMN IF NOT EXISTS document VARCHAR DEFAULT '';
ALTER TABLE answers ADD COLUMN IF NOT EXISTS steps VARCHAR[];
ALTER TABLE answers ADD COLUMN IF NOT EXISTS names VARCHAR[];
ALTER TABLE answers ADD COLUMN IF NOT EXISTS parts STRUCT(kind VARCHAR, records INTEGER, tokens INTEGER)[];
ALTER TABLE answers ADD COLUMN IF NOT EXISTS reports_in_relationships DOUBLE;
ALTER TABLE answers ADD COLUMN IF NOT EXISTS entities_in_relationships DOUBLE;
ALTER TABLE answers ADD COLUMN IF NOT EXISTS search_tokens INTEGER;
COMMENT ON TABLE answers IS 'Answers, each made once whatever number of experiments asks for it.';
COMMENT ON COLUMN answers.answer_id IS 'Hash of question, method, parameters, release, model and settings of the answer.';
COMMENT ON COLUMN answers.question IS 'The question.';
COMMENT ON COLUMN answers.method IS 'Retrieval method.';
COMMENT ON COLUMN answers.parameters IS 'All its parameters, as JSON.';
COMMENT ON COLUMN answers.release IS 'Release that was asked; of the document''s own index where each document has one.';
COMMENT ON COLUMN answers.model IS 'Model that wrote the answer; empty where its text is the evidence itself.';
COMMENT ON COLUMN answers.text IS 'The answer; empty where only retrieval was asked for.';
COMMENT ON COLUMN answers.context IS 'What the answer was made from, as a model reads it.';
COMMENT ON COLUMN answers.chunk_ids IS 'Retrieved chunks, best first.';
COMMENT ON COLUMN answers.citations IS 'References in the answer.';
COMMENT ON COLUMN answers.citations_resolved IS 'Those of them that lead to a place in a document or report.';
COMMENT ON COLUMN answers.context_tokens IS 'Tokens of the context.';
COMMENT ON COLUMN answers.prompt_tokens IS 'Tokens sent to models in these calls, embeddings among them.';
COMMENT ON COLUMN answers.completion_tokens IS 'Tokens that models wrote in these calls.';
COMMENT ON COLUMN answers.model_calls IS 'Calls of models, with those that an earlier run or another condition has bought.';
COMMENT ON COLUMN answers.cost IS 'US dollars of these calls; empty where a price is not known.';
COMMENT ON COLUMN answers.retrieve_ms IS 'Milliseconds of retrieval.';
COMMENT ON COLUMN answers.total_ms IS 'Milliseconds from question to answer.';
COMMENT ON COLUMN answers.failures IS 'Parts of the work that gave nothing and were left out.';
COMMENT ON COLUMN answers.answered_at IS 'When it was made.';
COMMENT ON COLUMN answers.document IS 'The document that the question is about, as the question names it; empty where it names none.';
COMMENT ON COLUMN answers.search_tokens IS 'Tokens sent to and written by chat models before the last call, which writes the answer; empty for answers of earlier versions of the program.';
COMMENT ON COLUMN answers.steps IS 'What its method decided, in order; empty for answers made elsewhere, and for those of earlier versions of the program, as what follows is.';
COMMENT ON COLUMN answers.names IS 'Names that its method found in the question and looked for; empty where it looks for none.';
COMMENT ON COLUMN answers.parts IS 'Records and tokens of the context by their kind.';
COMMENT ON COLUMN answers.reports_in_relationships IS 'Share of the different words of the context''s reports that its relationships have, from 0 to 1.';
COMMENT ON COLUMN answers.entities_in_relationships IS 'The same of its entities and chunks.';

CREATE TABLE IF NOT EXISTS experiment_answers (
    experiment VARCHAR NOT NULL,
    condition VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    answer_id VARCHAR NOT NULL,
    PRIMARY KEY (experiment, condition, question_id)
);
COMMENT ON TABLE experiment_answers IS 'Which answer each condition gave to each question.';
COMMENT ON COLUMN experiment_answers.experiment IS 'The experiment.';
COMMENT ON COLUMN experiment_answers.condition IS 'The condition.';
COMMENT ON COLUMN experiment_answers.question_id IS 'The question.';
COMMENT ON COLUMN experiment_answers.answer_id IS 'The answer.';

CREATE TABLE IF NOT EXISTS answer_samples (
    answer_id VARCHAR NOT NULL,
    temperature DOUBLE NOT NULL,
    replicate INTEGER NOT NULL,
    sample_id VARCHAR NOT NULL,
    PRIMARY KEY (answer_id, temperature, replicate)
);
COMMENT ON TABLE answer_samples IS 'Answers that were made once more by chance, to see what a model says again.';
COMMENT ON COLUMN answer_samples.answer_id IS 'The answer.';
COMMENT ON COLUMN answer_samples.temperature IS 'Temperature at which it was made again.';
COMMENT ON COLUMN answer_samples.replicate IS 'Number of the sample, from 0: one less than its seed.';
COMMENT ON COLUMN answer_samples.sample_id IS 'The sample: an answer, too.';

CREATE TABLE IF NOT EXISTS scores (
    answer_id VARCHAR NOT NULL,
    question_set VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    model VARCHAR NOT NULL DEFAULT '',
    PRIMARY KEY (answer_id, question_set, metric, model)
);
COMMENT ON TABLE scores IS 'How good one answer, or its retrieval, is by one metric.';
COMMENT ON COLUMN scores.answer_id IS 'The answer.';
COMMENT ON COLUMN scores.question_set IS 'The set whose gold answers and passages it was compared with.';
COMMENT ON COLUMN scores.metric IS 'Name of the metric, such as f1, recall@5 or claims.';
COMMENT ON COLUMN scores.value IS 'Its value; shares are from 0 to 1.';
COMMENT ON COLUMN scores.model IS 'Model that marked the answer; empty where the metric is computed, or an older version of the program wrote it.';

CREATE TABLE IF NOT EXISTS experiment_models (
    experiment VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    PRIMARY KEY (experiment, metric)
);
COMMENT ON TABLE experiment_models IS 'Whose marks an experiment goes by, where a model marks its answers.';
COMMENT ON COLUMN experiment_models.experiment IS 'The experiment.';
COMMENT ON COLUMN experiment_models.metric IS 'Name of the metric.';
COMMENT ON COLUMN experiment_models.model IS 'The model, as in scores.';

CREATE OR REPLACE VIEW experiment_scores AS
SELECT x.experiment, x.condition, x.question_id, x.answer_id, s.metric, s.model, s.value
FROM experiment_answers x JOIN experiments e USING (experiment)
JOIN scores s ON s.answer_id = x.answer_id AND s.question_set = e.question_set
LEFT JOIN experiment_models m ON m.experiment = x.experiment AND m.metric = s.metric
WHERE s.model = coalesce(m.model, '');
COMMENT ON VIEW experiment_scores IS 'The scores that an experiment goes by: of each answer one of a metric.';
COMMENT ON COLUMN experiment_scores.experiment IS 'The experiment.';
COMMENT ON COLUMN experiment_scores.condition IS 'The condition.';
COMMENT ON COLUMN experiment_scores.question_id IS 'The question.';
COMMENT ON COLUMN experiment_scores.answer_id IS 'The answer.';
COMMENT ON COLUMN experiment_scores.metric IS 'Name of the metric.';
COMMENT ON COLUMN experiment_scores.model IS 'Model that marked the answer; empty where the metric is computed.';
COMMENT ON COLUMN experiment_scores.value IS 'Its value; shares are from 0 to 1.';

CREATE TABLE IF NOT EXISTS claims (
    answer_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    claim VARCHAR NOT NULL,
    PRIMARY KEY (answer_id, position)
);
COMMENT ON TABLE claims IS 'Claims that an answer makes, duplicates removed.';
COMMENT ON COLUMN claims.answer_id IS 'The answer.';
COMMENT ON COLUMN claims.position IS 'Place within the answer, from 0.';
COMMENT ON COLUMN claims.claim IS 'The claim, understandable by itself.';

CREATE TABLE IF NOT EXISTS claim_extractions (
    answer_id VARCHAR PRIMARY KEY,
    extractor VARCHAR NOT NULL
);
COMMENT ON TABLE claim_extractions IS 'Answers whose claims were asked for, those that make none among them.';
COMMENT ON COLUMN claim_extractions.answer_id IS 'The answer.';
COMMENT ON COLUMN claim_extractions.extractor IS 'Hash of the model and prompt that found them.';

CREATE TABLE IF NOT EXISTS judgments (
    judgment_id VARCHAR PRIMARY KEY,
    question VARCHAR NOT NULL,
    first_answer VARCHAR NOT NULL,
    second_answer VARCHAR NOT NULL,
    criterion VARCHAR NOT NULL,
    replicate INTEGER NOT NULL,
    judge VARCHAR NOT NULL,
    winner VARCHAR NOT NULL,
    explanation VARCHAR NOT NULL,
    judged_at TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE judgments IS 'One verdict of a judge about two answers shown in one order.';
COMMENT ON COLUMN judgments.judgment_id IS 'Hash of question, both answers'' texts, criterion, replicate, judge and prompt: of all that a verdict depends on.';
COMMENT ON COLUMN judgments.question IS 'The question.';
COMMENT ON COLUMN judgments.first_answer IS 'answer_id of the answer shown first.';
COMMENT ON COLUMN judgments.second_answer IS 'answer_id of the answer shown second.';
COMMENT ON COLUMN judgments.criterion IS 'Comprehensiveness, diversity, empowerment, directness or overall.';
COMMENT ON COLUMN judgments.replicate IS 'Number of the repetition, from 0.';
COMMENT ON COLUMN judgments.judge IS 'Model that judged.';
COMMENT ON COLUMN judgments.winner IS 'first, second or tie.';
COMMENT ON COLUMN judgments.explanation IS 'The judge''s reason.';
COMMENT ON COLUMN judgments.judged_at IS 'When it judged.';

CREATE TABLE IF NOT EXISTS comparisons (
    experiment VARCHAR NOT NULL,
    criterion VARCHAR NOT NULL,
    condition_a VARCHAR NOT NULL,
    condition_b VARCHAR NOT NULL,
    questions INTEGER NOT NULL,
    verdicts INTEGER NOT NULL,
    win_rate DOUBLE NOT NULL,
    win_rate_low DOUBLE NOT NULL,
    win_rate_high DOUBLE NOT NULL,
    win_rate_first DOUBLE NOT NULL,
    win_rate_second DOUBLE NOT NULL,
    ties DOUBLE NOT NULL,
    first_chosen DOUBLE,
    first_chosen_low DOUBLE,
    first_chosen_high DOUBLE,
    consistent DOUBLE NOT NULL,
    agreed INTEGER NOT NULL,
    agreed_wins INTEGER NOT NULL,
    z DOUBLE,
    p DOUBLE NOT NULL,
    p_corrected DOUBLE NOT NULL,
    p_agreed DOUBLE NOT NULL,
    p_naive DOUBLE NOT NULL,
    p_first DOUBLE NOT NULL,
    p_second DOUBLE NOT NULL,
    winner VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    PRIMARY KEY (experiment, criterion, condition_a, condition_b)
);
ALTER TABLE comparisons ADD COLUMN IF NOT EXISTS p_normal DOUBLE;
COMMENT ON TABLE comparisons IS 'Two conditions of an experiment by one criterion, over all questions, orders and replicates.';
COMMENT ON COLUMN comparisons.experiment IS 'The experiment.';
COMMENT ON COLUMN comparisons.criterion IS 'The criterion.';
COMMENT ON COLUMN comparisons.condition_a IS 'The one.';
COMMENT ON COLUMN comparisons.condition_b IS 'The other.';
COMMENT ON COLUMN comparisons.questions IS 'Questions judged in both orders.';
COMMENT ON COLUMN comparisons.verdicts IS 'Verdicts on these questions.';
COMMENT ON COLUMN comparisons.win_rate IS 'Mean score of condition_a: 1 for a win, 0.5 for a tie; both orders weigh the same.';
COMMENT ON COLUMN comparisons.win_rate_low IS 'Lower end of its 95 % interval, by bootstrap over questions.';
COMMENT ON COLUMN comparisons.win_rate_high IS 'Upper end.';
COMMENT ON COLUMN comparisons.win_rate_first IS 'The same where condition_a is shown first.';
COMMENT ON COLUMN comparisons.win_rate_second IS 'The same where condition_a is shown second.';
COMMENT ON COLUMN comparisons.ties IS 'Share of verdicts that are ties.';
COMMENT ON COLUMN comparisons.first_chosen IS 'Share of verdicts, ties left out, for the answer shown first; 0.5 is fair. Empty where all are ties.';
COMMENT ON COLUMN comparisons.first_chosen_low IS 'Lower end of its 95 % interval, by bootstrap over questions; the judge is biased where 0.5 is outside.';
COMMENT ON COLUMN comparisons.first_chosen_high IS 'Upper end.';
COMMENT ON COLUMN comparisons.consistent IS 'Share of questions on which both orders say the same.';
COMMENT ON COLUMN comparisons.agreed IS 'Questions on which both orders name the same winner.';
COMMENT ON COLUMN comparisons.agreed_wins IS 'Those of them that name condition_a.';
COMMENT ON COLUMN comparisons.z IS 'Z of the Wilcoxon signed-rank test on the scores of the questions, zeros left out; empty where all are even.';
COMMENT ON COLUMN comparisons.p IS 'Its two-sided p value.';
COMMENT ON COLUMN comparisons.p_corrected IS 'The p value after Holm-Bonferroni over the pairs of one criterion.';
COMMENT ON COLUMN comparisons.p_agreed IS 'p of a sign test on the questions on which both orders name the same winner.';
COMMENT ON COLUMN comparisons.p_naive IS 'What p would be if each verdict were an observation of its own.';
COMMENT ON COLUMN comparisons.p_first IS 'What p would be with condition_a always shown first.';
COMMENT ON COLUMN comparisons.p_second IS 'What p would be with condition_a always shown second.';
COMMENT ON COLUMN comparisons.p_normal IS 'P value of Shapiro and Wilk''s test that the questions'' scores are normally distributed; empty for fewer than three, and where all are equal.';
COMMENT ON COLUMN comparisons.winner IS 'The better condition: p_corrected and p_agreed below 0.05, for the same side; empty where there is none.';
COMMENT ON COLUMN comparisons.verdict IS 'Why there is a winner or none, and what the order of answers did to it, in words.';

CREATE TABLE IF NOT EXISTS gradings (
    grading_id VARCHAR PRIMARY KEY,
    kind VARCHAR NOT NULL,
    question VARCHAR NOT NULL,
    answer_id VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    replicate INTEGER NOT NULL,
    model VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    reason VARCHAR NOT NULL,
    made_at TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE gradings IS 'What a model said, in a number, of one answer or one retrieved passage.';
COMMENT ON COLUMN gradings.grading_id IS 'Hash of the texts, the criterion, the replicate, the model and the prompt: of all that the number depends on.';
COMMENT ON COLUMN gradings.kind IS 'reference: an answer scored against a reference, from 1 to 10. assertion: the share of a question''s assertions that an answer meets. relevance: whether a passage bears on the question, 1 or 0. self-check: the share of an answer''s sentences that a sample supports.';
COMMENT ON COLUMN gradings.question IS 'The question.';
COMMENT ON COLUMN gradings.answer_id IS 'The answer; empty where a passage is graded.';
COMMENT ON COLUMN gradings.subject IS 'The criterion, the set_id of the assertions, or the chunk.';
COMMENT ON COLUMN gradings.replicate IS 'Number of the repetition, from 0.';
COMMENT ON COLUMN gradings.model IS 'Model that graded.';
COMMENT ON COLUMN gradings.value IS 'The number.';
COMMENT ON COLUMN gradings.reason IS 'The model''s reason.';
COMMENT ON COLUMN gradings.made_at IS 'When it was graded.';

CREATE TABLE IF NOT EXISTS assertion_sets (
    set_id VARCHAR PRIMARY KEY,
    question VARCHAR NOT NULL,
    assertions STRUCT(statement VARCHAR, sources VARCHAR[])[] NOT NULL,
    model VARCHAR NOT NULL,
    made_at TIMESTAMPTZ NOT NULL,
    chunk_ids VARCHAR[]
);
ALTER TABLE assertion_sets ADD COLUMN IF NOT EXISTS chunk_ids VARCHAR[];
COMMENT ON TABLE assertion_sets IS 'What an answer to a question must say, as a model wrote it from the corpus.';
COMMENT ON COLUMN assertion_sets.set_id IS 'Hash of the question, the passages read, the model and the prompt.';
COMMENT ON COLUMN assertion_sets.question IS 'The question.';
COMMENT ON COLUMN assertion_sets.assertions IS 'Statements, the most important first, each with the sentences of the corpus that it comes from.';
COMMENT ON COLUMN assertion_sets.model IS 'Model that wrote them.';
COMMENT ON COLUMN assertion_sets.made_at IS 'When it wrote them.';
COMMENT ON COLUMN assertion_sets.chunk_ids IS 'Chunks that it was shown; empty where an older version of the program asked.';

CREATE TABLE IF NOT EXISTS differences (
    difference_id VARCHAR PRIMARY KEY,
    first_answer VARCHAR NOT NULL,
    second_answer VARCHAR NOT NULL,
    first_shared INTEGER[] NOT NULL,
    second_shared INTEGER[] NOT NULL,
    model VARCHAR NOT NULL,
    made_at TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE differences IS 'Which sentences two answers share, for judging by what they do not.';
COMMENT ON COLUMN differences.difference_id IS 'Hash of the question, both answers, the model and the prompt.';
COMMENT ON COLUMN differences.first_answer IS 'answer_id of the one answer.';
COMMENT ON COLUMN differences.second_answer IS 'answer_id of the other.';
COMMENT ON COLUMN differences.first_shared IS 'Numbers of the one answer''s sentences that the other says too, from 1.';
COMMENT ON COLUMN differences.second_shared IS 'The same of the other answer.';
COMMENT ON COLUMN differences.model IS 'Model that found them.';
COMMENT ON COLUMN differences.made_at IS 'When it found them.';

CREATE TABLE IF NOT EXISTS agreements (
    experiment VARCHAR NOT NULL,
    criterion VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    condition_a VARCHAR NOT NULL,
    condition_b VARCHAR NOT NULL,
    majority VARCHAR NOT NULL,
    value_a DOUBLE NOT NULL,
    value_b DOUBLE NOT NULL,
    PRIMARY KEY (experiment, criterion, metric, question_id, condition_a, condition_b)
);
COMMENT ON TABLE agreements IS 'What the judge''s majority and the claims say of two answers to one question (GraphRAG, section 5).';
COMMENT ON COLUMN agreements.experiment IS 'The experiment.';
COMMENT ON COLUMN agreements.criterion IS 'The judge''s criterion: comprehensiveness or diversity.';
COMMENT ON COLUMN agreements.metric IS 'What the claims are counted by: claims, or claim_clusters at a threshold.';
COMMENT ON COLUMN agreements.question_id IS 'The question.';
COMMENT ON COLUMN agreements.condition_a IS 'The one condition.';
COMMENT ON COLUMN agreements.condition_b IS 'The other.';
COMMENT ON COLUMN agreements.majority IS 'The condition that more than half of all verdicts name; empty where there is none.';
COMMENT ON COLUMN agreements.value_a IS 'Claims or clusters of condition_a''s answer.';
COMMENT ON COLUMN agreements.value_b IS 'Those of condition_b''s.';

CREATE TABLE IF NOT EXISTS human_labels (
    labeller VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    criterion VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    first_answer VARCHAR NOT NULL,
    second_answer VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    note VARCHAR NOT NULL,
    labelled_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (labeller, kind, criterion, question_id, first_answer, second_answer)
);
COMMENT ON TABLE human_labels IS 'What people say of answers: a number for one, or which of two is better.';
COMMENT ON COLUMN human_labels.labeller IS 'Who says it, as the file or the command named them.';
COMMENT ON COLUMN human_labels.kind IS 'score: of one answer. preference: of two.';
COMMENT ON COLUMN human_labels.criterion IS 'What it is judged by.';
COMMENT ON COLUMN human_labels.question_id IS 'The question.';
COMMENT ON COLUMN human_labels.first_answer IS 'md5 of the text of the answer, or of that shown first: labels are of what was read.';
COMMENT ON COLUMN human_labels.second_answer IS 'md5 of the text of the answer shown second; empty for one alone.';
COMMENT ON COLUMN human_labels.value IS 'The number, 1 for yes and 0 for no; of two answers 1 where the first is better, 0 where the second is, else 0.5.';
COMMENT ON COLUMN human_labels.note IS 'What else they said.';
COMMENT ON COLUMN human_labels.labelled_at IS 'When it was read.';

CREATE TABLE IF NOT EXISTS index_metrics (
    release VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    value DOUBLE NOT NULL,
    measured_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (release, metric, level)
);
COMMENT ON TABLE index_metrics IS 'How good an index is, by one metric.';
COMMENT ON COLUMN index_metrics.release IS 'The release measured.';
COMMENT ON COLUMN index_metrics.metric IS 'Name of the metric, such as modularity.';
COMMENT ON COLUMN index_metrics.level IS 'Level of the communities; -1 where the metric has none.';
COMMENT ON COLUMN index_metrics.value IS 'Its value.';
COMMENT ON COLUMN index_metrics.measured_at IS 'When it was measured.';

CREATE TABLE IF NOT EXISTS metric_history (
    experiment VARCHAR NOT NULL,
    condition VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    questions INTEGER NOT NULL,
    mean DOUBLE NOT NULL,
    measured_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (experiment, condition, metric, measured_at)
);
COMMENT ON TABLE metric_history IS 'Mean of each metric at the end of each run of an experiment: to see what became better or worse.';
COMMENT ON COLUMN metric_history.experiment IS 'The experiment.';
COMMENT ON COLUMN metric_history.condition IS 'The condition.';
COMMENT ON COLUMN metric_history.metric IS 'Name of the metric.';
COMMENT ON COLUMN metric_history.release IS 'Release that was asked.';
COMMENT ON COLUMN metric_history.questions IS 'How many questions have it: only means over as many are compared.';
COMMENT ON COLUMN metric_history.mean IS 'Mean over the questions that have it.';
COMMENT ON COLUMN metric_history.measured_at IS 'When the run was scored; the same for all its rows.';

CREATE TABLE IF NOT EXISTS release_facts (
    release VARCHAR NOT NULL,
    fact VARCHAR NOT NULL,
    item VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    PRIMARY KEY (release, fact, item)
);
COMMENT ON TABLE release_facts IS 'What tables of the papers say of an index, noted when a preset is run.';
COMMENT ON COLUMN release_facts.release IS 'The release.';
COMMENT ON COLUMN release_facts.fact IS 'corpus, indexing, bytes, units or unit_tokens.';
COMMENT ON COLUMN release_facts.item IS 'What it is of: a part of the index, a level (C0 to C3, TS for the text), a count.';
COMMENT ON COLUMN release_facts.value IS 'Its value.';
